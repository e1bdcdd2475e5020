"""Videos of which every frame shows its number, in several containers."""

import av
import numpy as np

SIDE, BITS = 64, 8
KINDS = {"mp4": "libx264", "mov": "mpeg4", "avi": "mpeg4", "mkv": "libx264", "webm": "libvpx", "gif": "gif"}


def numbered(number, height=SIDE):
    """A frame that says its number: eight upright bars, light for 1."""
    row = np.repeat(np.array([(number >> bit) & 1 for bit in range(BITS)], np.uint8) * 200 + 20, SIDE // BITS)
    return np.broadcast_to(row[None, :, None], (height, SIDE, 3)).copy()


def number_of(picture):
    grey = np.asarray(picture.convert("L"), dtype=np.float64)
    bars = grey.reshape(grey.shape[0], BITS, -1).mean(axis=(0, 2))
    return sum(1 << bit for bit, light in enumerate(bars) if light > 120)


def write(path, frames=40, rate=10, *, sound=False, **options):
    """A video of numbered frames, with a key frame every twelve."""
    with av.open(str(path), "w", options=options) as container:
        stream = container.add_stream(KINDS[path.suffix[1:]], rate=rate)
        stream.width = stream.height = SIDE
        stream.pix_fmt = "rgb8" if path.suffix == ".gif" else "yuv420p"
        stream.gop_size = 12
        for number in range(frames):
            for packet in stream.encode(av.VideoFrame.from_ndarray(numbered(number), format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
    return path
