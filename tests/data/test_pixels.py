import io
import struct
import subprocess
import sys

import numpy as np
import pytest

from privfeat import PrivacyWarning
from privfeat.data.pixels import BadImageError, as_bytes, decode, is_image, list_images

Image = pytest.importorskip("PIL.Image")

RAMP = np.arange(0, 2**16, 257, dtype=np.uint16).reshape(16, 16)  # 0, 257, ..., 65535


def stored(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    file.seek(0)
    return file


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "PPM"])
def test_decode_scales_sixteen_bits_by_their_range(kind):
    image = decode(stored(Image.fromarray(RAMP), kind))
    assert image.mode == "L"
    np.testing.assert_array_equal(np.asarray(image).ravel(), np.arange(256))


def test_decode_takes_no_range_from_the_image_itself():
    dark = decode(stored(Image.fromarray(RAMP // 16), "PNG"))
    np.testing.assert_array_equal(np.unique(np.asarray(dark)), np.arange(17))


def test_decode_scales_twelve_bits_by_their_range():
    """What a pgm declares, and what a TIFF file says of its samples."""
    values = np.full(16, 4095, ">u2").tobytes()
    image = decode(io.BytesIO(b"P5 4 4 4095\n" + values))
    assert np.asarray(image).min() == 255
    tags = {256: 2, 257: 1, 258: 12, 259: 1, 262: 1, 273: 122, 277: 1, 278: 1, 279: 3}
    entries = b"".join(struct.pack("<HHIHH", t, 3, 1, v, 0) for t, v in tags.items())
    head = b"II*\x00" + struct.pack("<IH", 8, len(tags))
    image = decode(io.BytesIO(head + entries + bytes(4) + b"\xff\xf8\x00"))
    assert np.asarray(image).tolist() == [[255, 128]]


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_decode_refuses_numbers_without_a_known_range(dtype):
    with pytest.raises(BadImageError, match="no known range"):
        decode(stored(Image.fromarray(RAMP.astype(dtype)), "TIFF"))


def of_mode(mode, colour, **info):
    image = Image.new(mode, (4, 4), colour)
    image.info |= info
    return image


def palette(mode="P", **info):
    image = of_mode(mode, 0, **info)
    image.putpalette([10, 20, 30] * 256, "RGB")
    return image


@pytest.mark.parametrize(
    ("image", "mode", "colour"),
    [
        (lambda: of_mode("1", 1), "L", 255),
        (lambda: of_mode("L", 7), "L", 7),
        (lambda: of_mode("L", 7, transparency=7), "L", 255),
        (lambda: of_mode("LA", (0, 255)), "L", 0),
        (lambda: of_mode("LA", (0, 0)), "L", 255),
        (lambda: of_mode("RGBA", (255, 0, 0, 51)), "RGB", (255, 204, 204)),
        (lambda: of_mode("RGBA", (9, 8, 7, 255)), "RGB", (9, 8, 7)),
        (palette, "RGB", (10, 20, 30)),
        (lambda: palette(transparency=0), "RGB", (255, 255, 255)),
        (lambda: of_mode("PA", (0, 0)), "RGB", (255, 255, 255)),
        (lambda: of_mode("CMYK", (0, 255, 255, 0)), "RGB", (255, 0, 0)),
        (lambda: of_mode("YCbCr", (50, 128, 128)), "RGB", (50, 50, 50)),
    ],
)
def test_as_bytes_of_every_mode(image, mode, colour):
    found = as_bytes(image())
    assert found.mode == mode
    assert found.getpixel((2, 2)) == colour


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_decode_turns_images_upright(kind, orientation):
    """A white corner, stored as a camera stores it in each of the 8 orientations."""
    pixels = np.zeros((32, 48), np.uint8)
    pixels[:16, :16] = 255
    turned = {
        1: pixels,
        2: pixels[:, ::-1],
        3: pixels[::-1, ::-1],
        4: pixels[::-1],
        5: pixels.T,
        6: pixels.T[::-1],
        7: pixels[::-1, ::-1].T,
        8: pixels.T[:, ::-1],
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = Image.fromarray(np.ascontiguousarray(turned))
    found = np.asarray(converted_to_grey(decode(stored(image, kind, exif=exif))))
    assert found.shape == (32, 48)
    assert found[4, 4] > 250
    assert max(found[-4, 4], found[4, -4], found[-4, -4]) < 5


def converted_to_grey(image):
    return image.convert("L")


def tiff(pixels, photometric, sample_format=1):
    """Return an uncompressed grey TIFF, whose tags Pillow would not write so."""
    height, width = pixels.shape
    bits = 8 * pixels.itemsize
    entries = [(256, width), (257, height), (258, bits), (259, 1), (262, photometric)]
    entries += [(273, 8), (277, 1), (278, height), (279, pixels.nbytes)]
    entries += [(339, sample_format)]
    tags = b"".join(struct.pack("<HHIHH", tag, 3, 1, v, 0) for tag, v in entries)
    head = b"II*\0" + struct.pack("<I", 8 + pixels.nbytes) + pixels.tobytes()
    return io.BytesIO(head + struct.pack("<H", len(entries)) + tags + bytes(4))


@pytest.mark.parametrize("dtype", ["<u1", "<u2"])
def test_decode_knows_where_zero_is_white(dtype):
    """As X-rays have it; Pillow minds it for 8 bits alone."""
    largest = np.iinfo(dtype).max
    pixels = np.array([[0, largest // 5], [largest, 0]], dtype)
    black = np.array([[0, 51], [255, 0]])
    np.testing.assert_array_equal(np.asarray(decode(tiff(pixels, 1))), black)
    np.testing.assert_array_equal(np.asarray(decode(tiff(pixels, 0))), 255 - black)


def test_decode_refuses_bytes_with_a_sign():
    with pytest.raises(BadImageError, match="no known range"):
        decode(tiff(np.zeros((2, 2), np.int8), 1, sample_format=2))


def test_decode_takes_the_first_frame():
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    file = stored(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert decode(file).getpixel((3, 3)) == (255, 0, 0)


def test_decode_ignores_metadata_that_cannot_be_read():
    exif = b"Exif\x00\x00" + b"nonsense"
    file = stored(Image.new("RGB", (8, 8), "red"), "JPEG", exif=exif)
    assert decode(file).size == (8, 8)


def test_decode_refuses_what_is_cut_off():
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    whole = stored(Image.fromarray(pixels), "PNG").getvalue()
    with pytest.raises(BadImageError):
        decode(io.BytesIO(whole[: len(whole) // 2]))


def chunk(name, data):
    return name + struct.pack("<I", len(data)) + data


def webp_and_photo_cd(pixels, other):
    """Return a WebP file that Pillow's reader of PhotoCD takes as well.

    That one has no test of the first bytes: it looks at byte 2048, which is within the
    colour profile here, and at a chunk that readers of WebP pass over.
    """
    picture = stored(Image.fromarray(pixels), "WEBP", lossless=True).getvalue()[12:]
    size = b"".join(struct.pack("<I", side - 1)[:3] for side in pixels.shape[1::-1])
    head = b"WEBP" + chunk(b"VP8X", struct.pack("<I", 0x20) + size)
    profile = bytearray(4096)
    start = 2048 - len(head) - 16  # behind the names and lengths of two chunks
    profile[start : start + 4] = b"PCD_"
    head += chunk(b"ICCP", bytes(profile)) + picture
    head += chunk(b"junk", bytes(96 * 2048 - len(head) - 16) + other)
    return io.BytesIO(chunk(b"RIFF", head))


def test_decode_knows_a_file_by_itself_alone(monkeypatch):
    """Not by the order in which Pillow asks its kinds, which earlier files decide."""
    pixels = np.random.default_rng(0).integers(0, 256, (64, 48, 3), dtype=np.uint8)
    file = webp_and_photo_cd(pixels, bytes([90]) * (768 * 512 * 3 // 2))
    Image.init()
    monkeypatch.setattr(Image, "ID", ["PCD", *Image.ID])  # as after an empty file
    assert Image.open(file).size == (768, 512)
    np.testing.assert_array_equal(np.asarray(decode(file)), pixels)


@pytest.mark.parametrize("kind", ["AVIF", "JPEG2000", "TGA", "PCX", "EPS"])
def test_decode_refuses_other_kinds_under_a_known_name(kind, tmp_path):
    path = tmp_path / "scan.png"
    path.write_bytes(stored(Image.new("RGB", (32, 32)), kind).getvalue())
    with pytest.raises(BadImageError, match="cannot identify"):
        decode(path)


OF_TIMM = """
import io
from PIL import Image
from privfeat_extract.timm_data import TimmImages

class Opened:
    def __len__(self):
        return 2

    def __getitem__(self, number):
        orders.append([*Image.ID])
        try:
            Image.open(io.BytesIO((b"", b"no image")[number]))
        except OSError:
            return Image.new("L", (8, 8)), 0

orders = []
images = TimmImages("train", Opened())
assert [images.load(number)[1] for number in range(2)] == [0, 0]
assert orders[0] == orders[1] == Image.ID, orders
"""


def test_files_that_others_open_leave_the_kinds_in_their_order():
    subprocess.run([sys.executable, "-c", OF_TIMM], check=True)


def test_list_images_leaves_out_what_is_hidden(tmp_path):
    for name in ("cat/1.PNG", "cat/._1.png", ".trash/2.png", "cat/notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "dog").mkdir()
    with pytest.warns(UserWarning, match=r"are left out: .* \(\.txt\) they are no"):
        assert list_images(tmp_path) == (["cat/1.PNG"], ["cat", "dog"])
    assert not is_image("__MACOSX/cat/1.png")


def test_list_images_says_which_endings_it_leaves_out(tmp_path):
    """Six of fourteen images became records, without a word."""
    (tmp_path / "cat").mkdir()
    for name in ("cat/1.dcm", "cat/2.HEIC", "cat/3", "users.csv", "cat/.DS_Store"):
        (tmp_path / name).write_bytes(b"")
    with pytest.warns(UserWarning, match=r"\(\.HEIC, \.dcm, none\)"):
        list_images(tmp_path)


def test_list_images_takes_an_image_once_where_links_lead_back(tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(b"")
    (tmp_path / "cat" / "self").symlink_to(tmp_path / "cat")
    (tmp_path / "dog" / "up").symlink_to(tmp_path)
    (tmp_path / "owl").symlink_to(tmp_path / "dog")  # another folder: a class
    with pytest.warns(PrivacyWarning, match=r"dog/1.png and owl/1.png are one image"):
        images, folders = list_images(tmp_path)
    assert images == ["cat/1.png", "dog/1.png", "owl/1.png"]
    assert folders == ["cat", "dog", "owl"]


@pytest.mark.parametrize("kind", ["folder", "file", "hard link", "each other"])
def test_list_images_warns_of_an_image_under_two_names(tmp_path, kind):
    """It is two records, each protected on its own."""
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(b"")
    (tmp_path / "dog" / "loop.png").symlink_to("loop.png")
    (tmp_path / "dog" / "gone.png").symlink_to("nothing.png")
    assert len(list_images(tmp_path)[0]) == 4  # without a warning
    if kind == "file":
        (tmp_path / "dog" / "2.png").symlink_to("../cat/1.png")
    elif kind == "hard link":
        (tmp_path / "dog" / "2.png").hardlink_to(tmp_path / "cat" / "1.png")
    else:
        (tmp_path / "dog" / "more").symlink_to("../cat")
    if kind == "each other":
        (tmp_path / "cat" / "more").symlink_to("../dog")
    with pytest.warns(PrivacyWarning, match="are one image: it counts under each"):
        list_images(tmp_path)


def test_whatever_pillow_raises_is_a_bad_image():
    """Its plugins raise anything, and it takes no name for a kind of file."""
    file = io.BytesIO(b"P5 4 4 0\n" + bytes(16))
    with pytest.raises(BadImageError, match="maxval"):  # a bare ValueError
        decode(file)


def test_as_bytes_refuses_an_image_that_is_read_later_and_cut_off():
    noise = np.random.default_rng(0).integers(0, 2**16, (64, 64), dtype=np.uint16)
    whole = stored(Image.fromarray(noise), "PNG").getvalue()
    with pytest.raises(BadImageError):
        as_bytes(Image.open(io.BytesIO(whole[: len(whole) // 2])))
