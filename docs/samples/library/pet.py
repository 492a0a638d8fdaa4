# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # PET: what time of flight is worth
# A small scanner sees a body with two hot spheres and a cold one. The same coincidences are reconstructed with and
# without their time of flight. Arrays are (TOF bin, plane, angle, radial) and (z, y, x); lengths are mm.

# %%
import matplotlib.pyplot as plt
import numpy as np
import tomonode as tn

scanner = {"rings": 8, "detectors": 192, "ring_spacing": 6, "radius": 200, "depth": 8, "radial": 95, "angles": 96,
           "span": 3}
plain = tn.Pet(**scanner)
timed = tn.Pet(**scanner, tof=tn.tof_ps(13, 120, 200))                     # 13 bins of 120 ps, resolution 200 ps FWHM
grid = tn.Grid((72, 72, 15), (3.5, 3.5, 3))
A = tn.Projector(timed, grid)
A, timed.shape

# %% [markdown]
# The truth, in counts per mm and voxel, and water that attenuates.

# %%
z, y, x = (h * (np.arange(n) - (n - 1) / 2) for n, h in zip(grid.shape, grid.h[::-1]))
z, y, x = np.meshgrid(z, y, x, indexing="ij")
body = (x / 105) ** 2 + (y / 80) ** 2 < 1
truth = np.where(body, 0.5, 0).astype(np.float32)
for at, radius, value in (((45, 0), 11, 2), ((-30, 40), 7, 2), ((-25, -35), 14, 0)):
    truth[(x - at[0]) ** 2 + (y - at[1]) ** 2 + z**2 < radius**2] = value
m = np.exp(-0.0096 * tn.Projector(plain, grid)(body.astype(np.float32)))  # factors: attenuation along each line
trues = m * A(truth)
b = np.full_like(trues, 0.3 * trues.mean())                               # expected randoms and scatter
counts = np.random.default_rng(1).poisson(trues + b).astype(np.float32)
f"{counts.sum():.3g} counts, {b.sum() / counts.sum():.0%} of them background"

# %% [markdown]
# y ~ Poisson(m A x + b). Without time of flight the TOF bins are added.

# %%
keys = {"grid": grid, "iterations": 2, "subsets": 8, "psf": 4, "postfilter": 4}
image = tn.osem(timed, counts, factors=m, background=b, **keys)
without = tn.osem(plain, counts.sum(0), factors=m, background=b.sum(0), **keys)

# %%
figure, axes = plt.subplots(1, 3, figsize=(9, 3.3))
for axis, (name, slices) in zip(axes, {"truth": truth, "OSEM": without, "OSEM, time of flight 200 ps": image}.items()):
    axis.imshow(slices[7], cmap="gray_r", vmin=0, vmax=2)
    error = np.linalg.norm(slices - truth) / np.linalg.norm(truth)
    axis.set(title=name, xticks=[], yticks=[], xlabel=f"error {error:.2f}")
figure.tight_layout()
figure.savefig("pet.png", dpi=60)
