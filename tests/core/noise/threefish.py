"""Threefish in whole numbers of Python, from its specification."""


def threefish_256(key, block):
    """Return a block of four words encrypted by Threefish-256, tweak zero.

    Ferguson et al., The Skein Hash Function Family 1.3 (2010), Section 3.3.
    """
    rotations = [
        (14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32)
    ]  # fmt: skip
    schedule = [*key, key[0] ^ key[1] ^ key[2] ^ key[3] ^ 0x1BD11BDAA9FC1A22]
    words = list(block)
    for round_ in range(73):
        if round_ % 4 == 0:
            turn = round_ // 4
            for place in range(4):
                words[place] += schedule[(turn + place) % 5]
            words[3] += turn
            words = [word % 2**64 for word in words]
        if round_ == 72:
            return words
        for pair, by in zip((0, 2), rotations[round_ % 8], strict=True):
            left, right = words[pair], words[pair + 1]
            left = (left + right) % 2**64
            right = (right << by | right >> (64 - by)) % 2**64
            words[pair : pair + 2] = left, left ^ right
        words = [words[0], words[3], words[2], words[1]]
    raise AssertionError
