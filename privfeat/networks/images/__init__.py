"""From images, as they are given, to the inputs of a network."""
