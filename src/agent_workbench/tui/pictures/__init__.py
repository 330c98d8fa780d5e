"""Pictures of the screen: an SVG of one moment."""
