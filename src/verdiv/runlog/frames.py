"""Where the frames of Zstandard end: the unpacker itself does not tell a whole stream from one that breaks off."""

from __future__ import annotations

__all__ = ["FrameWalk"]

SKIPPABLE = 0x184D2A50
"""Magic number of frames that hold no content; the lowest four bits are free."""

DICTIONARY = (0, 1, 2, 4)
"""Bytes of a dictionary's number by its flag."""

CONTENT = (0, 2, 4, 8)
"""Bytes of the content's size by its flag; 1 for flag 0 where a frame is a single segment."""


class FrameWalk:
    """Follows the frames of a stream by their headers (RFC 8878, section 3), without unpacking them.

    Examples
    --------
    >>> import zstandard
    >>> stored, walk = zstandard.compress(b"a run log"), FrameWalk()
    >>> walk.take(stored[:-1])
    >>> walk.between
    False
    >>> walk.take(stored[-1:])
    >>> walk.between
    True
    """

    def __init__(self) -> None:
        self._held = b""
        self._skip = 0
        self._in_frame = False
        self._checksum = False

    @property
    def between(self) -> bool:
        """Whether what was taken so far ends where a frame ends, or is nothing."""
        return not (self._in_frame or self._skip or self._held)

    def take(self, stored: bytes) -> None:
        """Follow the next bytes of the stream."""
        data = self._held + stored
        place = 0
        while True:
            step = min(self._skip, len(data) - place)
            place, self._skip = place + step, self._skip - step
            head = data[place : place + 8]
            length = 0 if self._skip else self._block(head) if self._in_frame else self._frame(head)
            if not length:
                self._held = data[place:]
                return
            self._skip = length

    def _frame(self, head: bytes) -> int:
        """Enter a frame; return the bytes of its header, or of a whole skippable frame, 0 where more are needed."""
        if len(head) < 5:
            return 0
        if int.from_bytes(head[:4], "little") & ~0xF == SKIPPABLE:
            return 8 + int.from_bytes(head[4:8], "little") if len(head) == 8 else 0
        flags = head[4]
        single = flags >> 5 & 1
        self._in_frame, self._checksum = True, bool(flags >> 2 & 1)
        content = CONTENT[flags >> 6] or single
        return 5 + (1 - single) + DICTIONARY[flags & 3] + content

    def _block(self, head: bytes) -> int:
        """Pass a block; return its bytes, the frame's checksum included after the last one."""
        if len(head) < 3:
            return 0
        header = int.from_bytes(head[:3], "little")
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        self._in_frame = not last
        return 3 + (1 if kind == 1 else size) + (4 if last and self._checksum else 0)
