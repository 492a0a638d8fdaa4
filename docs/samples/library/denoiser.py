# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # A learned reconstruction through `Projector.torch`
# Five steps of gradient descent on |A x - y|^2, and after each a small network that removes noise and streaks. The
# derivative of the loss goes through A and its adjoint. It learns from random ellipses, a minute on a GPU, and is then
# shown others. Needs torch.

# %%
import functools

import matplotlib.pyplot as plt
import numpy as np
import tomonode as tn
import torch

gpu = torch.cuda.is_available()
where = torch.device("cuda" if gpu else "cpu")
n, updates, batch = (128, 1500, 8) if gpu else (64, 120, 4)               # on a processor a short form
scan = tn.Parallel(angles=30, radial=n, bin=1)
A = tn.Projector(scan, tn.Grid((n, n, 1), 1), tn.Device("cuda" if gpu else "cpu"))
rng = np.random.default_rng(1)
torch.manual_seed(1)


def phantoms(count):
    """Bodies with ellipses, (count, 1, n, n), and their line integrals with noise."""
    y, x = np.meshgrid(np.linspace(-1, 1, n), np.linspace(-1, 1, n), indexing="ij")
    images = np.zeros((count, *A.in_shape), np.float32)
    for image in images[:, 0]:
        image[(x / rng.uniform(0.6, 0.9)) ** 2 + (y / rng.uniform(0.6, 0.9)) ** 2 < 1] = 1
        for _ in range(rng.integers(3, 9)):
            (at_x, at_y), (a, b) = rng.uniform(-0.45, 0.45, 2), rng.uniform(0.04, 0.25, 2)
            image[((x - at_x) / a) ** 2 + ((y - at_y) / b) ** 2 < 1] += rng.uniform(-0.5, 0.5)
    images *= 2.0 / n                                                     # 1/mm: line integrals of about 2
    images = torch.from_numpy(images).to(where)
    data = A.torch(images)
    return images, data + 0.03 * torch.randn_like(data)


# %%
class Learned(torch.nn.Module):
    def __init__(self, steps=5, channels=24):
        super().__init__()
        convolution = functools.partial(torch.nn.Conv2d, kernel_size=3, padding=1)
        self.cleaners = torch.nn.ModuleList(torch.nn.Sequential(
            convolution(2, channels), torch.nn.ReLU(), convolution(channels, channels), torch.nn.ReLU(),
            convolution(channels, 1))
            for _ in range(steps))
        self.lengths = torch.nn.Parameter(torch.full((steps,), 1.0))
        x = torch.ones(A.in_shape, device=where)
        for _ in range(20):                                               # the largest eigenvalue of A'A
            x = A.T.torch(A.torch(x))
            self.largest = float(x.norm())
            x = x / x.norm()

    def forward(self, data):
        x = torch.zeros((len(data), *A.in_shape), device=data.device)
        for cleaner, length in zip(self.cleaners, self.lengths):
            gradient = A.T.torch(A.torch(x) - data) / self.largest
            x = x - length * gradient
            x = x + cleaner(torch.cat([x, gradient], 1) * n) / n
        return x


net = Learned().to(where)
optimiser = torch.optim.Adam(net.parameters(), 2e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, updates)
for update in range(updates):
    truth, data = phantoms(batch)
    loss = ((net(data) - truth) ** 2).mean() * n**2
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    schedule.step()
    if update % (updates // 6) == 0:
        print(f"{update}: {loss.item():.4f}")

# %% [markdown]
# Phantoms that it has not seen, beside filtered backprojection and SART of the library.

# %%
with torch.no_grad():
    truth, data = phantoms(8)
    learned = net(data)
fbp, sart = (torch.stack([tn.reconstruct(scan, one, keys, device=A.device) for one in data])
             for keys in ("algorithm=fbp filter=hann", "algorithm=sart iterations=10 subsets=6 relaxation=0.3"))
errors = {name: float((image - truth).norm() / truth.norm())
          for name, image in (("FBP", fbp), ("SART", sart), ("learned", learned))}
print(errors)

# %%
figure, axes = plt.subplots(1, 4, figsize=(9, 2.6))
for axis, (name, image) in zip(axes, {"truth": truth, "FBP": fbp, "SART": sart, "learned": learned}.items()):
    axis.imshow(image[0, 0].cpu(), cmap="gray", vmin=0, vmax=3 / n)
    axis.set(title=name, xticks=[], yticks=[], xlabel=f"error {errors[name]:.2f}" if name in errors else "")
figure.tight_layout()
figure.savefig("denoiser.png", dpi=60)
