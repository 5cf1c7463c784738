"""Columns of texts to features: by a sentence encoder, or by hashed n-grams."""
