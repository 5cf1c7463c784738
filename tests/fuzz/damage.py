"""Bytes that were flipped, or cut off."""

from hypothesis import strategies as st


def damaged(content, draw):
    """Return the bytes with a few flipped, or cut off somewhere."""
    size = len(content)
    if draw(st.integers(0, 9)) == 0:
        return content[: draw(st.integers(0, size - 1))]
    changed = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        changed[draw(st.integers(0, size - 1))] ^= draw(st.integers(1, 255))
    return bytes(changed)
