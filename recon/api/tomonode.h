/* SPDX-License-Identifier: Apache-2.0 */
/* tomonode.h - reconstruct PET, tomosynthesis and parallel beams on a processor or a GPU. C99 and C++11.
 *
 *   device      a processor or a GPU
 *   scan        what was measured: the geometry of all bins; immutable, independent of devices
 *   projector   the system matrix A of a scan and a volume on a device: forward y = A x, adjoint x = A'y, exact transposes
 *   recon       one reconstruction: plan it, put the data, run it, read the volume
 *
 * Units are mm, degrees, s, float32. A has lengths in mm: a volume in 1/mm gives line integrals without unit.
 *
 * Arrays have these axes, the last one is fastest in C order; leading axes of length 1 may be left out or added:
 *   volume                        [z][y][x]
 *   PET sinogram                  [TOF bin][plane][angle][radial]   planes in the order of tn_pet.segments; factors without TOF bins
 *   lines, list mode              [line]
 *   views (tomosynthesis, cone)   [view][v][u]
 *   parallel beams                [slice][angle][radial]
 * Strides are free: tn_projector_info() tells those for which nothing has to be copied. With these strides a volume may have a
 * padding after each column along z; it belongs to the array, and is set to 0. Axes of space: docs/geometry.md (views),
 * docs/pet-geometry.md (x to the right, y down, z into the gantry; (0, 0, 0) is the scanner's middle).
 *
 * Errors. Functions return 0 or a negative errno value, and describe it in *err (NULL: not needed). On failure outputs are
 * unchanged, but for the content of arrays. The library never prints, exits, writes a file or changes a signal.
 *
 * Lifetime. Input structs and arrays are used during the call only; geometry is copied. A projector or a recon keeps its device and
 * its scan alive: free them in any order. All free functions accept NULL.
 *
 * Threads. Any function may be called from any thread. Calls that use one device wait for each other (a progress callback must not
 * call one for its own device: EDEADLK); those on different devices run at the same time. The OpenMP settings and the CUDA device of the calling thread are unchanged.
 * After fork() a device of the parent is refused (EPERM) in the child; there open one in a thread that was started there (libgomp).
 *
 * GPU. Arrays in CUDA memory are used in place, or permuted on the GPU, if they are on that of the device, otherwise refused
 * (EINVAL). Work that fills them must be complete, or queued on tn_device_info.stream (DLPack's `stream`). When a function returns,
 * its work is complete.
 *
 * ABI. Structs that the library reads or fills begin with their size (TN_SIZE); members are only added at the end, and 0 is always
 * the default. Symbols are versioned; the SONAME changes with TN_ABI. */
#ifndef TOMONODE_H
#define TOMONODE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TN_ABI 0
#ifndef TN_API
#define TN_API
#endif
#define TN_SIZE(s) .size = sizeof(s) /* struct tn_pet p = {TN_SIZE(p), .rings = 24}; C++: TN_INIT(p) */
#define TN_INIT(s) ((s).size = sizeof(s))

struct tn_device;
struct tn_scan;
struct tn_projector;
struct tn_recon;

struct tn_err {
	int code;	/* errno value; 0: none */
	char text[500]; /* one sentence that names the thing, the value and the place; UTF-8, no patient data */
};

/* An array: the layout of DLTensor (DLPack), to which pointers may be cast. */
struct tn_array {
	void *data;
	struct {
		int32_t type; /* TN_HOST, ... */
		int32_t index;
	} device;
	int32_t ndim;
	struct {
		uint8_t code, bits; /* 2, 32: float32, the only type */
		uint16_t lanes;	    /* 1 */
	} type;
	int64_t *shape;
	int64_t *strides; /* elements; NULL: C order */
	uint64_t byte_offset;
};
enum tn_memory { TN_HOST = 1, TN_CUDA = 2, TN_CUDA_HOST = 3, TN_CUDA_MANAGED = 13 }; /* DLDeviceType */

#ifndef __cplusplus
/* A host array in C order: TN_FLOATS(x, nz, ny, nx). Valid until the end of the enclosing block. */
#define TN_FLOATS(pointer, ...)                                                                                                  \
	(&(struct tn_array){.data = (pointer),                                                                                   \
			    .device = {TN_HOST, 0},                                                                              \
			    .ndim = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                                          \
			    .type = {2, 32, 1},                                                                                  \
			    .shape = (int64_t[]){__VA_ARGS__}})
#else
} /* templates are C++ */
/* The same in C++; valid until the end of the call that it is an argument of. */
#define TN_FLOATS(pointer, ...) tn_floats((pointer), __VA_ARGS__)
struct tn_floats {
	int64_t shape[8];
	tn_array array;

	template <class... N> explicit tn_floats(void *pointer, N... n) : shape{static_cast<int64_t>(n)...}, array()
	{
		array.data = pointer;
		array.device.type = TN_HOST;
		array.ndim = sizeof...(n);
		array.type.code = 2;
		array.type.bits = 32;
		array.type.lanes = 1;
		array.shape = shape;
	}
	operator const tn_array *() const
	{
		return &array;
	}
};
extern "C" {
#endif

/* n voxels of h mm along x, y, z; lo: lower corner of voxel 0. */
struct tn_grid {
	int32_t n[3];
	double h[3], lo[3];
};

struct tn_tof {
	int32_t n;    /* bins; 0: no time of flight. They ascend towards the first end of a ray */
	double width; /* of a bin, mm: time difference times c / 2 */
	double sigma; /* standard deviation, mm: FWHM of the time difference times c / 2 / 2.3548 */
};

/* ---- library and devices ---- */

/* Return the version ("0.2.0"); *ret_abi (or NULL): TN_ABI of the library. */
TN_API const char *tn_version(int *ret_abi);

/* Call `each` for every device that can be opened: "cpu", "cuda:0", ... Return their number. */
TN_API int tn_devices(void (*each)(void *ctx, const char *name, const char *description, size_t memory), void *ctx);

/* Open "auto", "cpu", "cpu:THREADS", "cuda" or "cuda:N". ENODEV: no such device, or a library without CUDA. */
TN_API int tn_device_open(const char *name, struct tn_device **ret, struct tn_err *err);
TN_API void tn_device_close(struct tn_device *d);

struct tn_device_info {
	size_t size;
	char name[96];	/* "cuda:0 (NVIDIA H200)" */
	int32_t memory; /* TN_HOST or TN_CUDA */
	int32_t index, threads;
	size_t bytes; /* memory; 0: unknown */
	void *stream; /* cudaStream_t; NULL on the processor */
};
TN_API int tn_device_info(struct tn_device *d, struct tn_device_info *ret, struct tn_err *err);

/* ---- scans ---- */

/* Sinograms of a cylindrical PET scanner (docs/pet-geometry.md). */
struct tn_pet {
	size_t size;
	int32_t rings, detectors;    /* rings, detectors of a ring */
	double ring_spacing, radius; /* inner radius */
	double depth;		     /* mean depth of interaction */
	double bin;		     /* radial bin of arc-corrected data; else the detector spacing */
	int32_t radial, angles;
	double first_angle;
	int32_t arc_corrected;
	int32_t span, max_difference; /* odd, or 2 as GE; used if n_segments is 0: segments 0, +1, -1, +2, ... */
	int32_t n_segments;
	const int32_t *segments; /* [n_segments][2]: ring differences first .. last */
	double fov_radius;	 /* 0: the largest radial bin, at most 350 and 0.98 of where rays end */
	struct tn_tof tof;
};
TN_API int tn_scan_pet(const struct tn_pet *from, struct tn_scan **ret, struct tn_err *err);

/* Any lines between points: LORs, or the events of list mode. */
struct tn_lines {
	size_t size;
	const float *points; /* [n_points][3]: x, y, z */
	size_t n_points;
	const int32_t *pairs; /* [n][2]: first and second end of each line */
	size_t n;
	const int32_t *tof_bin; /* [n]; with time of flight */
	const float *add;  /* [n]: expected background over the factor of each event's bin; NULL: none. Used by tn_recon_run() */
	double fov_radius; /* of a cylinder around z; 0: all of the volume */
	struct tn_tof tof;
	double background; /* expected number of the events that are background, for the start of tn_recon_run(); 0: unknown */
};
TN_API int tn_scan_lines(const struct tn_lines *from, struct tn_scan **ret, struct tn_err *err);

/* Views of a point source on a flat detector: 12 numbers a view, as ASTRA's cone_vec: source, centre of the detector, step from a
 * column (u) to the next, step from a row (v) to the next. The projector `slices` needs the volume between detector and source along
 * z. A reconstruction covers the detector along x and y, on the average of the views. */
struct tn_views {
	size_t size;
	int32_t n, n_u, n_v;
	const double *views; /* [n][12] */
};
TN_API int tn_scan_views(const struct tn_views *from, struct tn_scan **ret, struct tn_err *err);

/* A stack of 2-D parallel beams. */
struct tn_parallel {
	size_t size;
	int32_t slices, angles, radial;
	double bin, slice, offset; /* distances; position of the middle of the radial bins */
	double first_angle, arc;   /* 0: 180 */
	const double *angle;	   /* [angles] in place of these; NULL: equal steps */
};
TN_API int tn_scan_parallel(const struct tn_parallel *from, struct tn_scan **ret, struct tn_err *err);
TN_API void tn_scan_free(struct tn_scan *s);

struct tn_scan_info {
	size_t size;
	int32_t kind; /* 1 PET, 2 lines, 3 views, 4 parallel */
	int32_t ndim;
	int64_t shape[6]; /* of its data */
	int64_t rays;	  /* for tn_scan_rays() */
};
TN_API int tn_scan_info(const struct tn_scan *s, struct tn_scan_info *ret, struct tn_err *err);

/* Compute the end points of rays [first, first + n) in C order of the data without TOF bins: ret[n][6]: x, y, z of the first and of the
 * second end; NaN: no ray. PET, parallel beams: where the ray leaves the field of view; views: the source, the centre of the bin.
 * For plots, other projectors and tests of conventions. */
TN_API int tn_scan_rays(const struct tn_scan *s, size_t first, size_t n, double *ret, struct tn_err *err);

/* ---- projectors ---- */

enum tn_model_kind {
	TN_DEFAULT = 0, /* PET, parallel: Joseph; lines: Joseph in three dimensions; views: slices */
	TN_SIDDON,	/* PET, parallel: exact lengths, path by path */
	TN_JOSEPH,
	TN_SLICES,  /* views: bilinear in each slice, times the length in the slice */
	TN_SAMPLED, /* parallel: bilinear at points every `sampling` mm */
	TN_EXACT,   /* PET, views: ray walk, the slow reference */
};
struct tn_model {
	size_t size;
	int32_t kind;	     /* enum tn_model_kind */
	int32_t first, step; /* angles, views or lines first, first + step, ...; 0, 0: all. A subset's data are a strided array */
	int32_t deterministic;
	double psf;	 /* FWHM of a Gaussian in image space: A D G; 0: none */
	double sampling; /* of TN_SAMPLED; 0: a tenth of a voxel */
};
/* m: NULL: all defaults. The operator is prepared once; calls allocate nothing if the arrays have the native strides. */
TN_API int tn_projector_new(struct tn_device *d, struct tn_scan *s, const struct tn_grid *g, const struct tn_model *m,
			    struct tn_projector **ret, struct tn_err *err);
TN_API void tn_projector_free(struct tn_projector *a);

struct tn_layout {
	int32_t ndim;
	int64_t shape[6], strides[6]; /* strides: with these, nothing is copied */
	int64_t floats;		      /* length of the memory that these strides reach, padding included */
};
struct tn_projector_info {
	size_t size;
	struct tn_layout x, y;
	size_t bytes; /* that the projector has on the device */
};
TN_API int tn_projector_info(const struct tn_projector *a, struct tn_projector_info *ret, struct tn_err *err);

/* y = A x and x = A'y; add != 0: y += A x and x += A'y. */
TN_API int tn_forward(struct tn_projector *a, const struct tn_array *x, const struct tn_array *y, int add, struct tn_err *err);
TN_API int tn_adjoint(struct tn_projector *a, const struct tn_array *y, const struct tn_array *x, int add, struct tn_err *err);

/* ---- reconstruction ---- */

enum tn_role {
	TN_DATA = 1,   /* counts or line integrals; not used by lists of events */
	TN_FACTORS,    /* PET: m of y ~ Poisson(m A x + b): attenuation times efficiency, a fraction */
	TN_BACKGROUND, /* PET: b: expected randoms and scatter */
	TN_VALID,      /* views: 1: datum, 0: no datum, -1: air */
	TN_SENSITIVITY, /* lists, required: A'm over all LORs that can be measured, a volume on the grid of tn_recon_info(): tn_adjoint()
			   of their factors, with the same psf */
};

/* Call `each` for every key of the reconstructions of a kind of scan (tn_scan_info.kind): the tables of docs/configuration.md. */
TN_API int tn_keys(int kind,
		   void (*each)(void *ctx, const char *key, const char *fallback, const char *allowed, const char *meaning),
		   void *ctx);

/* Plan a reconstruction and allocate its memory. keys: "algorithm=osem iterations=4 subsets=14 psf=4.5", as in protocols of the node;
 * grid: in place of the keys of the volume, NULL: by the keys. PET, parallel beams: n[0] = n[1], h[0] = h[1], centred. roles: bits
 * 1 << TN_DATA | ... that will be put. EINVAL: names the key, the value, and what is allowed. ENOMEM: names the bytes that do not fit. */
TN_API int tn_recon_new(struct tn_device *d, struct tn_scan *s, const char *keys, unsigned roles, const struct tn_grid *grid,
			struct tn_recon **ret, struct tn_err *err);
TN_API void tn_recon_free(struct tn_recon *r);

struct tn_recon_info {
	size_t size;
	struct tn_grid grid;
	int32_t iterations, subsets;
	size_t bytes_device, bytes_host;
	int32_t streamed; /* the data do not fit on the device at once */
};
TN_API int tn_recon_info(const struct tn_recon *r, struct tn_recon_info *ret, struct tn_err *err);

/* Pass the values of a role, once; they are copied. EINVAL: a value, which the text names, is negative or not a number; then the
 * reconstruction cannot be used any more. */
TN_API int tn_recon_put(struct tn_recon *r, enum tn_role role, const struct tn_array *a, struct tn_err *err);

struct tn_report {
	size_t size;
	double seconds_setup, seconds_run;
	double counts, residual; /* PET: sum of the data or number of events; ART, SART: |A x - y| / |y|; else 0 */
};
/* Reconstruct, once. progress (or NULL) is called in the calling thread, with 0..1 within each stage. ECANCELED: tn_recon_cancel(). */
TN_API int tn_recon_run(struct tn_recon *r, void (*progress)(void *ctx, const char *stage, double fraction), void *ctx,
			struct tn_report *ret, struct tn_err *err);
/* End tn_recon_run() after the current update. From any thread, and from a signal handler. */
TN_API void tn_recon_cancel(struct tn_recon *r);

/* Copy the volume, after tn_recon_run(). */
TN_API int tn_recon_read(struct tn_recon *r, const struct tn_array *volume, struct tn_err *err);

#ifdef __cplusplus
}
#endif
#endif
