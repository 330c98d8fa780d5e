"""HTTP server for front ends: who is answered, and how much they may send."""
