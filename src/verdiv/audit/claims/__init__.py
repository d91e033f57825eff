"""Printed figures held against what their own parameters give: the claims file, its language, its outcomes."""
