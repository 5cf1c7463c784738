"""Post-processing of releases: nothing here sees a sum before noise.

`spectrum` inverts a noisy Gram matrix, `systems` solves one noisy system per class.
"""
