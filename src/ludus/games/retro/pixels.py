"""From a console's screen to a small grey frame."""

import numpy as np

from ludus.core import extras

try:
    import cv2
except ImportError as error:
    raise extras.missing("retro", "opencv-python-headless") from error

cv2.setNumThreads(1)  # there is a process for each core already


def shrink(screen: np.ndarray, out: np.ndarray) -> None:
    """screen: uint8 [H, W, 3]; out: uint8 [h, w], contiguous, written in place"""
    grey = cv2.cvtColor(screen, cv2.COLOR_RGB2GRAY)
    height, width = out.shape
    half_height, half_width = grey.shape[0] // 2, grey.shape[1] // 2
    halves = 1 <= half_height / height < 2 and 1 <= half_width / width < 2
    if halves:
        # The mean of 2x2 pixels and a linear rest take a fifth of the time that AREA takes for any factor.
        grey = cv2.resize(grey, (half_width, half_height), interpolation=cv2.INTER_AREA)
    cv2.resize(grey, (width, height), dst=out, interpolation=cv2.INTER_LINEAR if halves else cv2.INTER_AREA)


def png(screen: np.ndarray) -> bytes:
    """screen: uint8 [H, W, 3]"""
    done, encoded = cv2.imencode(".png", screen[:, :, ::-1], [cv2.IMWRITE_PNG_COMPRESSION, 1])
    assert done
    return encoded.tobytes()
