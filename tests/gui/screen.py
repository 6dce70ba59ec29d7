# SPDX-License-Identifier: Apache-2.0
"""What stands on the X display, as pixels and as a PNG file. Standard library and libX11 only."""
import ctypes
import struct
import zlib


class _XImage(ctypes.Structure):
    # Xlib.h, struct _XImage: the fields up to the size of a pixel.
    _fields_ = [
        ("width", ctypes.c_int),
        ("height", ctypes.c_int),
        ("xoffset", ctypes.c_int),
        ("format", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("byte_order", ctypes.c_int),
        ("bitmap_unit", ctypes.c_int),
        ("bitmap_bit_order", ctypes.c_int),
        ("bitmap_pad", ctypes.c_int),
        ("depth", ctypes.c_int),
        ("bytes_per_line", ctypes.c_int),
        ("bits_per_pixel", ctypes.c_int),
    ]


_x11 = ctypes.CDLL("libX11.so.6")
_x11.XOpenDisplay.restype = ctypes.c_void_p
_x11.XDefaultRootWindow.restype = ctypes.c_ulong
_x11.XDefaultRootWindow.argtypes = [ctypes.c_void_p]
_x11.XGetImage.restype = ctypes.POINTER(_XImage)
_x11.XGetImage.argtypes = [
    ctypes.c_void_p, ctypes.c_ulong, ctypes.c_int, ctypes.c_int, ctypes.c_uint, ctypes.c_uint, ctypes.c_ulong, ctypes.c_int
]
_x11.XDestroyImage.argtypes = [ctypes.c_void_p]
_x11.XCloseDisplay.argtypes = [ctypes.c_void_p]
_Z_PIXMAP = 2
_ALL_PLANES = 0xFFFFFFFF


class Picture:
    """Rows of bytes in the order blue, green, red, unused."""

    def __init__(self, width, height, rows):
        self.width, self.height, self.rows = width, height, rows

    def count(self, colour, left=0):
        """Pixels of a colour (0xRRGGBB) from column `left` on."""
        wanted = struct.pack("<I", colour)[:3]
        total = 0
        for row in self.rows:
            part = row[left * 4 :]
            at = part.find(wanted)
            while at >= 0:
                if at % 4 == 0:
                    total += 1
                    at = part.find(wanted, at + 4)
                else:
                    at = part.find(wanted, at + 1)
        return total

    def save(self, path):
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        lines = b"".join(b"\0" + self._rgb(row) for row in self.rows)  # 0: no filter
        header = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        with open(path, "wb") as file:
            file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header))
            file.write(chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))

    def _rgb(self, row):
        rgb = bytearray(self.width * 3)
        rgb[0::3], rgb[1::3], rgb[2::3] = row[2::4], row[1::4], row[0::4]
        return bytes(rgb)


def capture(width, height):
    """The upper left of the display named by DISPLAY, which must have 24 bits a pixel in 32."""
    display = _x11.XOpenDisplay(None)
    if not display:
        raise RuntimeError("no X display answers")
    try:
        image = _x11.XGetImage(display, _x11.XDefaultRootWindow(display), 0, 0, width, height, _ALL_PLANES, _Z_PIXMAP)
        facts = image.contents
        if facts.bits_per_pixel != 32:
            raise RuntimeError(f"{facts.bits_per_pixel} bits a pixel: 32 are read")
        rows = [ctypes.string_at(facts.data + y * facts.bytes_per_line, width * 4) for y in range(height)]
        _x11.XDestroyImage(image)
        return Picture(width, height, rows)
    finally:
        _x11.XCloseDisplay(display)
