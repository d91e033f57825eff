"""Simulated runs of the whole protocol, with known truth: the test bench of every estimate and rule.

``world`` says what draws come out as, ``design`` what is drawn, ``table`` draws a run as a draws table, ``truth``
gives the true values of every estimand, ``scenarios`` holds named worlds, ``runlog`` writes run logs.
"""
