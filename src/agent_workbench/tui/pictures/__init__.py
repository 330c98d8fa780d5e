"""The screen as a file: an SVG of one moment, an asciicast of a recording."""
