# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # Tomosynthesis: few views over a small arc
# 15 views over 40 degrees of a compressed object with two discs at two heights. Arrays are (view, v, u) and (z, y, x).

# %%
import matplotlib.pyplot as plt
import numpy as np
import tomonode as tn

angles = np.deg2rad(np.linspace(-20, 20, 15))  # of each view: source, centre of the detector, steps of columns and rows
views = [[0, 650 * np.sin(a), 650 * np.cos(a), 40, 0, 0, 1, 0, 0, 0, 1, 0] for a in angles]
scan = tn.Views(views, n_u=80, n_v=120)
A = tn.Projector(scan, tn.Grid((80, 120, 40), 1, lo=(0, -60, 20)))        # between detector and source
z, y, x = np.meshgrid(*(lo + h * (np.arange(n) + 0.5)
                        for n, h, lo in zip(A.grid.shape, A.grid.h[::-1], A.grid.lo[::-1])), indexing="ij")
truth = np.where((x / 60) ** 2 + (y / 50) ** 2 < 1, 0.05, 0).astype(np.float32)
truth[((x - 25) ** 2 + (y + 15) ** 2 < 64) & (abs(z - 30) < 3)] = 0.08
truth[((x - 30) ** 2 + (y - 12) ** 2 < 49) & (abs(z - 50) < 3)] = 0.09

# %% [markdown]
# Photons are counted; the line integral is the logarithm. Each reconstruction covers the detector, from z = 20 mm on.

# %%
photons = 5e4
seen = np.random.default_rng(1).poisson(photons * np.exp(-A(truth)))
lines = np.maximum(np.log(photons / np.maximum(seen, 1)), 0).astype(np.float32)
volume = {"voxel": 1, "slice_spacing": 1, "support": 20, "thickness": 40}
images = {name: tn.reconstruct(scan, lines, algorithm=name, **volume, **keys) for name, keys in (
    ("bp", {}), ("fbp", {"filter": "hann"}), ("osem", {"iterations": 3}))}
{name: image.shape for name, image in images.items()}

# %%
figure, axes = plt.subplots(2, 4, figsize=(9, 7))
for column, (name, image) in zip(axes.T, {"truth": truth, **images}.items()):
    for axis, k in zip(column, (10, 30)):
        axis.imshow(image[k], cmap="gray", vmin=np.percentile(image[k], 20), vmax=image[k].max())
        axis.set(title=f"{name}, z = {20.5 + k:g} mm", xticks=[], yticks=[])
figure.tight_layout()
figure.savefig("tomosynthesis.png", dpi=60)
