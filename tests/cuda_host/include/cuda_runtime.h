#pragma once
// Runs CUDA C++ on the host: a block on an OS thread, its threads as fibers.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include <cmath>
#define __CUDACC__ 1
#define __CUDA_ARCH__ 900
#define __CUDA_ARCH_LIST__ 900
#define __device__
#define __global__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ static thread_local
#define __align__(n) __attribute__((aligned(n)))
struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x, y, z; dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {} };
#define V2(T, N) struct __attribute__((aligned(2 * sizeof(T)))) N { T x, y; }; static inline N make_##N(T x, T y) { return {x, y}; }
#define V4(T, N, A) struct __attribute__((aligned(A))) N { T x, y, z, w; }; static inline N make_##N(T x, T y, T z, T w) { return {x, y, z, w}; }
V2(float, float2) V2(double, double2) V2(int, int2) V2(unsigned, uint2) V2(unsigned short, ushort2) V2(short, short2)
V4(float, float4, 16) V4(int, int4, 16) V4(unsigned, uint4, 16) V4(unsigned char, uchar4, 4) V4(unsigned short, ushort4, 8)
struct float3 { float x, y, z; };
static inline float3 make_float3(float x, float y, float z) { return {x, y, z}; }

enum cudaError_t { cudaSuccess = 0, cudaErrorMemoryAllocation = 2, cudaErrorInvalidValue = 1 };
typedef void *cudaStream_t; typedef void *cudaEvent_t;
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16, cudaDevAttrMaxSharedMemoryPerBlockOptin = 97 };
struct cudaDeviceProp { char name[256]; size_t totalGlobalMem; int major, minor; size_t sharedMemPerBlockOptin; int multiProcessorCount; };
struct cudaFuncAttributes { int ptxVersion; };
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess = 0 };
enum { cudaEnableDefault = 0 };
cudaError_t cudaGetLastError(); cudaError_t cudaSetDevice(int); cudaError_t cudaGetDeviceCount(int *); cudaError_t cudaDriverGetVersion(int *);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *, int); cudaError_t cudaDeviceGetAttribute(int *, cudaDeviceAttr, int);
const char *cudaGetErrorString(cudaError_t);
cudaError_t cudaMalloc(void **, size_t); cudaError_t cudaFree(void *); cudaError_t cudaMallocHost(void **, size_t); cudaError_t cudaFreeHost(void *);
template <class T> cudaError_t cudaMalloc(T **p, size_t n) { return cudaMalloc((void **)p, n); }
template <class T> cudaError_t cudaMallocAsync(T **p, size_t n, cudaStream_t) { return cudaMalloc((void **)p, n); }
static inline cudaError_t cudaFreeAsync(void *p, cudaStream_t) { return cudaFree(p); }
cudaError_t cudaMemGetInfo(size_t *, size_t *);
cudaError_t cudaMemcpyAsync(void *, const void *, size_t, cudaMemcpyKind, cudaStream_t); cudaError_t cudaMemcpy(void *, const void *, size_t, cudaMemcpyKind);
cudaError_t cudaMemsetAsync(void *, int, size_t, cudaStream_t);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *, unsigned); cudaError_t cudaStreamCreate(cudaStream_t *); cudaError_t cudaStreamDestroy(cudaStream_t);
cudaError_t cudaStreamSynchronize(cudaStream_t); cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned);
cudaError_t cudaEventCreate(cudaEvent_t *); cudaError_t cudaEventCreateWithFlags(cudaEvent_t *, unsigned); cudaError_t cudaEventDestroy(cudaEvent_t);
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t = 0); cudaError_t cudaEventSynchronize(cudaEvent_t); cudaError_t cudaEventElapsedTime(float *, cudaEvent_t, cudaEvent_t);
template <class F> cudaError_t cudaFuncSetAttribute(F, cudaFuncAttribute, int n) { return n <= 227 * 1024 ? cudaSuccess : cudaErrorInvalidValue; }
template <class F> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, F) { a->ptxVersion = 90; return cudaSuccess; }
cudaError_t cudaGetDriverEntryPointByVersion(const char *, void **, unsigned, unsigned long long, cudaDriverEntryPointQueryResult *);

namespace emu {
struct fiber { uint3 tid; };
struct block_ids { uint3 block; dim3 grid, dim; };
extern thread_local fiber *cur;
extern thread_local block_ids ids;
void *dynamic();
void launch(dim3 grid, dim3 block, size_t shared, bool together, void (*body)(void *), void *ctx);
template <class F> void run(dim3 grid, dim3 block, size_t shared, cudaStream_t, bool together, F f) { launch(grid, block, shared, together, [](void *c) { (*(F *)c)(); }, &f); }
struct config { dim3 grid, block; size_t shared; bool together; config(dim3 g, dim3 b, size_t s = 0, cudaStream_t = 0) : grid(g), block(b), shared(s), together(false) {} };
template <class F> void run(config c, F f) { run(c.grid, c.block, c.shared, 0, c.together, f); }
void sync(); int sync_count(int); void syncwarp(unsigned); void named(int id, int n); void yield();
uint64_t exchange(unsigned mask, uint64_t v, int from, bool *valid); // value of lane `from`
uint64_t slot(int lane); unsigned members();
int lane();
void gather(unsigned mask, uint64_t v, uint64_t out[32], unsigned *alive);
void fail(const char *);
}
namespace emu { struct big { char b[3072]; };
static inline cudaError_t start(const void *k, dim3 g, dim3 b, void **args, size_t s, bool together) { void (*f)(big) = (void (*)(big))k; big *j = (big *)args[0]; run(g, b, s, 0, together, [&] { f(*j); }); return cudaSuccess; } }
#define EMU_COOP(k, g, b, a, s, st) emu::start(k, g, b, a, s, true)
#define cudaLaunchKernel(k, g, b, a, s, st) emu::start(k, g, b, a, s, false)
#define threadIdx (emu::cur->tid)
#define blockIdx (emu::ids.block)
#define gridDim (emu::ids.grid)
#define blockDim (emu::ids.dim)
#define __syncthreads() emu::sync()
#define __syncthreads_count(p) emu::sync_count(!!(p))
#define __syncthreads_or(p) (emu::sync_count(!!(p)) > 0)
static inline void __syncwarp(unsigned m = 0xffffffffu) { emu::syncwarp(m); }
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
template <class T> static inline uint64_t emu_bits(T v) { uint64_t b = 0; memcpy(&b, &v, sizeof v); return b; }
template <class T> static inline T emu_value(uint64_t b) { T v; memcpy(&v, &b, sizeof v); return v; }
template <class T> static inline T emu_shfl(unsigned m, T v, int from, bool in)
{
	uint64_t out[32]; unsigned alive;
	emu::gather(m, emu_bits(v), out, &alive);
	if (!in) return v;
	if (!(alive >> from & 1)) return emu_value<T>(0xdeadbeefdeadbeefull);
	return emu_value<T>(out[from]);
}
template <class T> static inline T __shfl_sync(unsigned m, T v, int l) { return emu_shfl(m, v, l & 31, true); }
template <class T> static inline T __shfl_xor_sync(unsigned m, T v, int d) { return emu_shfl(m, v, emu::lane() ^ d, true); }
template <class T> static inline T __shfl_up_sync(unsigned m, T v, int d) { int l = emu::lane() - d; return emu_shfl(m, v, l, l >= 0); }
template <class T> static inline T __shfl_down_sync(unsigned m, T v, int d) { int l = emu::lane() + d; return emu_shfl(m, v, l, l < 32); }
template <class T, class F> static inline T emu_reduce(unsigned m, T v, F f)
{
	uint64_t out[32]; unsigned alive; T r = v;
	emu::gather(m, emu_bits(v), out, &alive);
	for (int i = 0; i < 32; i++) if (alive & m & (1u << i)) r = f(r, emu_value<T>(out[i]));
	return r;
}
template <class T> static inline T __reduce_max_sync(unsigned m, T v) { return emu_reduce(m, v, [](T a, T b) { return a > b ? a : b; }); }
template <class T> static inline T __reduce_min_sync(unsigned m, T v) { return emu_reduce(m, v, [](T a, T b) { return a < b ? a : b; }); }
static inline int __any_sync(unsigned m, int p) { return emu_reduce(m, p != 0, [](bool a, bool b) { return a || b; }); }
static inline int __all_sync(unsigned m, int p) { return emu_reduce(m, p != 0, [](bool a, bool b) { return a && b; }); }
template <class T> static inline T __ldg(const T *p) { return *p; }
template <class T> static inline T __ldcs(const T *p) { return *p; }
template <class T> static inline T __ldcg(const T *p) { return *p; }
template <class T> static inline void __stcs(T *p, T v) { *p = v; }
template <class T> static inline void __stcg(T *p, T v) { *p = v; }
static inline int atomicAdd(int *p, int v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
static inline unsigned atomicAdd(unsigned *p, unsigned v) { return __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL); }
static inline unsigned long long atomicAdd(unsigned long long *p, unsigned long long v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
template <class T, class U> static inline T emu_atomic_float(T *p, T v) { U o, n; T f; __atomic_load((U *)p, &o, __ATOMIC_RELAXED); do { memcpy(&f, &o, sizeof f); f += v; memcpy(&n, &f, sizeof f); } while (!__atomic_compare_exchange((U *)p, &o, &n, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)); f -= v; return f; }
static inline float atomicAdd(float *p, float v) { return emu_atomic_float<float, uint32_t>(p, v); }
static inline double atomicAdd(double *p, double v) { return emu_atomic_float<double, uint64_t>(p, v); }
static inline void atomicAdd(float2 *p, float2 v) { if ((uintptr_t)p % 8) emu::fail("float2 atomic"); atomicAdd(&p->x, v.x); atomicAdd(&p->y, v.y); }
static inline void atomicAdd(float4 *p, float4 v) { if ((uintptr_t)p % 16) emu::fail("float4 atomic"); atomicAdd(&p->x, v.x); atomicAdd(&p->y, v.y); atomicAdd(&p->z, v.z); atomicAdd(&p->w, v.w); }
template <class T> static inline T emu_atomic_sel(T *p, T v, bool larger) { T o = __atomic_load_n(p, __ATOMIC_RELAXED); while ((larger ? v > o : v < o) && !__atomic_compare_exchange_n(p, &o, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)); return o; }
static inline int atomicMax(int *p, int v) { return emu_atomic_sel(p, v, true); }
static inline int atomicMin(int *p, int v) { return emu_atomic_sel(p, v, false); }
static inline unsigned atomicMax(unsigned *p, unsigned v) { return emu_atomic_sel(p, v, true); }
static inline float __int_as_float(int v) { float f; memcpy(&f, &v, 4); return f; }
static inline float __uint_as_float(unsigned v) { float f; memcpy(&f, &v, 4); return f; }
static inline int __float_as_int(float v) { int f; memcpy(&f, &v, 4); return f; }
static inline double __hiloint2double(int hi, int lo) { uint64_t b = (uint64_t)(uint32_t)hi << 32 | (uint32_t)lo; double d; memcpy(&d, &b, 8); return d; }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (uint64_t)a * b >> 32; }
static inline float __saturatef(float x) { return x > 0 ? x < 1 ? x : 1 : 0; }
static inline float __fdividef(float a, float b) { return a / b; }
static inline int __float2int_rn(float x) { return (int)lrintf(x); }
static inline long long __double2ll_rn(double x) { return llrint(x); }
static inline float __fadd_rd(float a, float b) { double s = (double)a + b; float f = (float)s; return f > s ? nextafterf(f, -INFINITY) : f; }
#define EMU_NOFUSE __attribute__((noinline, optimize("fp-contract=off")))
EMU_NOFUSE static float __fsub_rn(float a, float b) { return a - b; }
EMU_NOFUSE static float __fadd_rn(float a, float b) { return a + b; }
EMU_NOFUSE static float __fmul_rn(float a, float b) { return a * b; }
EMU_NOFUSE static double __dadd_rn(double a, double b) { return a + b; }
EMU_NOFUSE static double __dmul_rn(double a, double b) { return a * b; }
static inline size_t __cvta_generic_to_shared(const void *p) { return (size_t)p; }
#define __expf expf
#define __logf logf
static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
static inline void sincospi(double x, double *s, double *c) { double r = fmod(x, 2.0); *s = sin(M_PI * r); *c = cos(M_PI * r); if (r == floor(r)) *s = 0; }
static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }
static inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
static inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
static inline unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
static inline unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
static inline unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
static inline unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
static inline long long min(long long a, long long b) { return a < b ? a : b; }
static inline long long max(long long a, long long b) { return a > b ? a : b; }
static inline unsigned long long min(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
static inline size_t min(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t max(size_t a, size_t b) { return a > b ? a : b; }
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }
