"""Run logs: their records, hash chain, reading, writing, joining and checking.

Import from the modules: :mod:`~verdiv.runlog.records`, :mod:`~verdiv.runlog.reader`,
:mod:`~verdiv.runlog.writer`, :mod:`~verdiv.runlog.table`.
"""
