# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # Parallel beams: an algorithm of one's own
# 40 angles with noise are few for filtered backprojection. Least squares with a penalty on the total variation, in
# fifteen lines of numpy around `A(x)` and `A.T(y)`, makes more of them.

# %%
import matplotlib.pyplot as plt
import numpy as np
import tomonode as tn

scan = tn.Parallel(angles=40, radial=128, bin=1)
A = tn.Projector(scan, tn.Grid((128, 128, 1), 1))
y, x = np.meshgrid(np.arange(128) - 63.5, np.arange(128) - 63.5, indexing="ij")
truth = np.zeros(A.in_shape, np.float32)
for (at_x, at_y), (a, b), value in (((0, 0), (50, 58), 0.04), ((0, 0), (46, 54), -0.02), ((-16, -8), (10, 20), -0.01),
                                    ((18, 0), (8, 14), -0.008), ((0, 30), (12, 8), 0.006), ((8, -28), (4, 4), 0.01)):
    truth[0][((x - at_x) / a) ** 2 + ((y - at_y) / b) ** 2 < 1] += value
data = (A(truth) + np.random.default_rng(1).normal(0, 0.02, A.out_shape)).astype(np.float32)
fbp = tn.reconstruct(scan, data, "algorithm=fbp filter=hann")
sart = tn.reconstruct(scan, data, "algorithm=sart iterations=10 subsets=8 relaxation=0.5 non_negative=true")

# %% [markdown]
# The gradient of |A x - y|^2 / 2 + weight TV(x), with the momentum of Nesterov.

# %%
def tv_gradient(image, weight, smooth=1e-3):
    steps = [np.diff(image, axis=axis, append=image.take([-1], axis)) for axis in (1, 2)]
    length = np.sqrt(steps[0] ** 2 + steps[1] ** 2 + smooth**2)
    return -weight * sum(np.diff(step / length, axis=axis, prepend=0) for step, axis in zip(steps, (1, 2)))


norm = np.ones(A.in_shape, np.float32)
for _ in range(20):                                                       # the largest eigenvalue of A'A
    norm = A.T(A(norm))
    largest, norm = np.linalg.norm(norm), norm / np.linalg.norm(norm)
weight = 0.15
image = before = np.zeros(A.in_shape, np.float32)
for k in range(150):
    ahead = image + k / (k + 3) * (image - before)
    gradient = A.T(A(ahead) - data) + tv_gradient(ahead, weight)
    before, image = image, np.maximum(ahead - gradient / (largest + 8 * weight / 1e-3), 0).astype(np.float32)

# %%
figure, axes = plt.subplots(1, 4, figsize=(9, 2.6))
for axis, (name, found) in zip(axes, {"truth": truth, "FBP": fbp, "SART": sart, "total variation": image}.items()):
    axis.imshow(found[0], cmap="gray", vmin=0, vmax=0.035)
    error = np.linalg.norm(found - truth) / np.linalg.norm(truth)
    axis.set(title=name, xticks=[], yticks=[], xlabel=f"error {error:.2f}")
figure.tight_layout()
figure.savefig("beams.png", dpi=60)
