"""Pictures of the screen: an SVG of one moment, an asciicast of a recording."""
