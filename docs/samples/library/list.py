# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # List mode: one event after the other
# Detectors may be anywhere; here they are on three rings, of which a part is missing. Each event is a line between two
# of them.

# %%
import matplotlib.pyplot as plt
import numpy as np
import tomonode as tn

rng = np.random.default_rng(1)
phi = np.arange(128) * 2 * np.pi / 128
phi = phi[(phi < 1.2) | (phi > 1.7)]                                      # no detectors here
points = np.array([[100 * np.cos(p), 100 * np.sin(p), z] for z in (-6, 0, 6) for p in phi], np.float32)
pairs = np.stack(np.triu_indices(len(points), 1), 1)                      # all lines that can be measured
grid = tn.Grid((40, 40, 5), (3.2, 3.2, 3))
lines = tn.Lines(points, pairs, fov_radius=60)
A = tn.Projector(lines, grid)
A

# %%
z, y, x = np.meshgrid(*(h * (np.arange(n) - (n - 1) / 2) for n, h in zip(grid.shape, grid.h[::-1])), indexing="ij")
truth = np.where(x**2 + y**2 < 45**2, 1, 0).astype(np.float32)
truth[(x - 15) ** 2 + (y + 12) ** 2 < 100] = 4
truth[(x + 18) ** 2 + (y - 10) ** 2 < 64] = 0
efficiency = rng.uniform(0.05, 0.1, len(pairs)).astype(np.float32)       # of each line: its factor
random = np.full(len(pairs), 0.8, np.float32)                             # expected background of each line
counts = rng.poisson(efficiency * A(truth) + random)
order = rng.permutation(np.repeat(np.arange(len(pairs)), counts))         # events in the order of time
f"{len(order)} events"

# %% [markdown]
# What an event adds to the model is its background over its factor. The sensitivity is the adjoint of the factors of
# all lines, with the PSF of the reconstruction.

# %%
events = tn.Lines(points, pairs[order], add=(random / efficiency)[order], fov_radius=60, background=float(random.sum()))
sensitivity = tn.Projector(lines, grid, psf=5).T(efficiency)
image = tn.osem(events, sensitivity=sensitivity, grid=grid, iterations=5, subsets=8, psf=5)

# %%
figure, axes = plt.subplots(1, 3, figsize=(9, 3.2))
shown = {"truth": truth, "sensitivity": sensitivity, "OSEM of the events": image}
for axis, (name, slices) in zip(axes, shown.items()):
    axis.imshow(slices[2], cmap="gray_r", vmin=0, vmax=slices[2].max() if name == "sensitivity" else 4)
    axis.set(title=name, xticks=[], yticks=[])
figure.tight_layout()
figure.savefig("list.png", dpi=60)
