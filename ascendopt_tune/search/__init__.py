"""The search: Stage I proposes tiling programs (tiling/), Stage II kernels (kernel/); the engine alternates them.

What is in this folder serves both stages, and knows neither.
"""
