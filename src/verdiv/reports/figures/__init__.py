"""Figures: small SVG drawings written by hand, in the colours of the page that holds them."""
