"""The placements of another scheduler, judged in hindsight."""
