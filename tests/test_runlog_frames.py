"""Whole and broken-off streams of Zstandard are told apart."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
import zstandard

from verdiv.runlog.frames import FrameWalk
from verdiv.runlog.lines import Source

CONTENTS = [b"", b"a", bytes(500_000), os.urandom(300_000), b"some words, " * 40_000]
SKIPPABLE = (0x184D2A5B).to_bytes(4, "little") + (5).to_bytes(4, "little") + b"notes"


def frames(checksum: bool, sized: bool) -> list[bytes]:
    """Pack each content as one frame, and put a skippable one among them."""
    packer = zstandard.ZstdCompressor(write_checksum=checksum, write_content_size=sized)
    made = [packer.compress(content) for content in CONTENTS]
    return [*made[:2], SKIPPABLE, *made[2:]]


@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("sized", [False, True])
def test_only_the_end_of_a_frame_is_between_frames(checksum: bool, sized: bool) -> None:
    """However the bytes arrive, the walk is between frames where one has ended, and nowhere else."""
    made, rng = frames(checksum, sized), random.Random(3)
    ends = {0}
    for frame in made:
        ends.add(max(ends) + len(frame))
    stored = b"".join(made)
    cuts = sorted({*ends, *(end - 1 for end in ends if end), *(end + 1 for end in ends), *range(60)})
    cuts = sorted({*cuts, *rng.sample(range(len(stored)), 500)})
    walk, place = FrameWalk(), 0
    for cut in [c for c in cuts if c <= len(stored)]:
        walk.take(stored[place:cut])
        place = cut
        assert walk.between == (cut in ends), cut


@pytest.mark.parametrize("missing", [0, 1, 4, 5, 1000])
def test_a_source_says_that_it_breaks_off(tmp_path: Path, missing: int) -> None:
    """A packed file without its last bytes, be they the checksum alone, is cut; a whole one is not."""
    stored = b"".join(frames(checksum=True, sized=True)[-2:])
    path = tmp_path / "a.zst"
    path.write_bytes(stored[: len(stored) - missing])
    with Source(path) as source:
        while source.read():
            pass
        assert source.cut == bool(missing)
