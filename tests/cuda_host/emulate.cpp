#include <cuda.h>
#include <atomic>
#include <thread>
#include <vector>
#undef threadIdx
#undef blockIdx
#undef __shared__
namespace emu {
#define STACK (128 * 1024)
thread_local fiber *cur; thread_local block_ids ids;
struct task : fiber { void *sp; char *stack; int index; bool done; unsigned warp_seq; };
struct warp { uint64_t slot[2][32]; unsigned tag[2], mask[2], arrived[2], alive; };
struct state { std::vector<task> t; std::vector<char *> stacks; std::vector<warp> w; int n, alive; unsigned gen; int arrived, count, result; int named_n[16]; unsigned named_gen[16]; std::vector<char> dyn; void *main_sp; void (*body)(void *); void *ctx; char *dynp; unsigned long progress; };
static thread_local state *S;
static thread_local task *T;
void fail(const char *m) { fprintf(stderr, "emulator: %s (block %u,%u thread %d)\n", m, ids.block.x, ids.block.y, T ? T->index : -1); abort(); }
extern "C" void emu_switch(void **save, void *to);
asm(R"(
.text
.globl emu_switch
emu_switch:
	pushq %rbx
	pushq %rbp
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	movq %rsp,(%rdi)
	movq %rsi,%rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbp
	popq %rbx
	ret
)");
static void entry() { S->body(S->ctx); T->done = true; S->alive--; S->w[T->index / 32].alive &= ~(1u << (T->index & 31)); S->progress++; emu_switch(&T->sp, S->main_sp); fail("resumed a finished thread"); }
void yield() { emu_switch(&T->sp, S->main_sp); }
void *dynamic() { return S->dynp; }
int lane() { return T->index & 31; }
static void check_sync() { if (S->arrived == S->alive && S->alive > 0) { S->result = S->count; S->arrived = S->count = 0; S->gen++; S->progress++; } }
int sync_count(int p) { unsigned g = S->gen; S->arrived++; S->count += p; S->progress++; check_sync(); while (S->gen == g) { check_sync(); if (S->gen != g) break; yield(); } return S->result; }
void sync() { sync_count(0); }
void named(int id, int n) { unsigned g = S->named_gen[id]; S->progress++; if (++S->named_n[id] == n) { S->named_n[id] = 0; S->named_gen[id]++; } while (S->named_gen[id] == g) yield(); }
static inline unsigned alive_of(int w) { return S->w[w].alive; }
void gather(unsigned mask, uint64_t v, uint64_t out[32], unsigned *alive)
{
	int wi = T->index / 32, l = lane(); unsigned seq = ++T->warp_seq; int k = seq & 1; warp &w = S->w[wi];
	if (!(mask >> l & 1)) fail("lane is not in its own mask");
	if (w.tag[k] != seq) { w.tag[k] = seq; w.arrived[k] = 0; w.mask[k] = mask; } // all have arrived at seq - 1, so all have left seq - 2
	if (w.mask[k] != mask) fail("different masks");
	w.slot[k][l] = v; w.arrived[k] |= 1u << l; S->progress++;
	for (;;) { unsigned a = alive_of(wi) & mask; if ((w.arrived[k] & a) == a) break; yield(); }
	*alive = w.arrived[k]; memcpy(out, w.slot[k], 256);
}
void syncwarp(unsigned m) { uint64_t o[32]; unsigned a; gather(m, 0, o, &a); }
static void run_block(state &s, uint3 id)
{
	ids.block = id; s.alive = s.n; s.arrived = s.count = 0; s.progress = 0; memset(s.named_n, 0, sizeof s.named_n);
	memset(s.w.data(), 0, s.w.size() * sizeof(warp));
	if (s.dyn.size()) memset(s.dyn.data(), 0xff, s.dyn.size()); // NaN
	for (int i = 0; i < s.n; i++) s.w[i / 32].alive |= 1u << (i & 31);
	unsigned bx = ids.dim.x, by = ids.dim.y;
	for (int i = 0; i < s.n; i++) {
		task &t = s.t[i]; t.index = i; t.done = false; t.warp_seq = 0; t.tid = {(unsigned)i % bx, (unsigned)i / bx % by, (unsigned)i / (bx * by)};
		void **sp = (void **)(t.stack + STACK); sp -= 2; *sp = (void *)entry; sp -= 6; for (int k = 0; k < 6; k++) sp[k] = 0; t.sp = sp;
	}
	unsigned long idle = 0, last = 0;
	while (s.alive) {
		for (int w = 0; w < (s.n + 31) / 32; w++) {
			unsigned long before;
			do { before = s.progress;
				for (int i = w * 32; i < s.n && i < w * 32 + 32; i++) if (!s.t[i].done) { T = &s.t[i]; cur = T; emu_switch(&s.main_sp, T->sp); }
			} while (s.progress != before && alive_of(w));
		}
		if (s.progress == last) { if (++idle > 20000000) fail("deadlock"); if (idle % 64 == 0) std::this_thread::yield(); } else { idle = 0; last = s.progress; }
	}
	T = NULL;
}
static state make(dim3 block, size_t shared, void (*body)(void *), void *ctx)
{
	state s; s.n = block.x * block.y * block.z; s.t.resize(s.n); s.w.resize((s.n + 31) / 32); s.gen = 0; memset(s.named_gen, 0, sizeof s.named_gen);
	s.dyn.resize(shared ? shared + 1024 : 0); s.dynp = shared ? (char *)(((uintptr_t)s.dyn.data() + 1023) / 1024 * 1024) : NULL; s.body = body; s.ctx = ctx;
	return s;
}
static thread_local std::vector<char *> pool;
static void work(std::atomic<long> &next, long only, dim3 grid, dim3 block, size_t shared, void (*body)(void *), void *ctx)
{
	state s = make(block, shared, body, ctx); S = &s; ids.grid = grid; ids.dim = block;
	while ((int)pool.size() < s.n) pool.push_back((char *)aligned_alloc(64, STACK));
	for (int i = 0; i < s.n; i++) s.t[i].stack = pool[i];
	long all = (long)grid.x * grid.y * grid.z;
	for (long b; (b = only >= 0 ? only : next++) < all;) { run_block(s, {(unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y), (unsigned)(b / grid.x / grid.y)}); if (only >= 0) break; }
	S = NULL;
}
void launch(dim3 grid, dim3 block, size_t shared, bool together, void (*body)(void *), void *ctx)
{
	std::atomic<long> next(0); long all = (long)grid.x * grid.y * grid.z; std::vector<std::thread> th;
	if (block.x * block.y * block.z > 1024 || all < 1 || shared > 227 * 1024) fail("launch configuration");
	if (together) { for (long b = 0; b < all; b++) th.emplace_back([&, b] { work(next, b, grid, block, shared, body, ctx); for (char *p : pool) free(p); pool.clear(); }); }
	else if (all > 8) th.emplace_back([&] { work(next, -1, grid, block, shared, body, ctx); for (char *p : pool) free(p); pool.clear(); });
	if (!together) work(next, -1, grid, block, shared, body, ctx);
	for (auto &t : th) t.join();
}
static barrier *B(void *b) { return (barrier *)b; }
static void turn(barrier *b) { if (b->pending == 0 && b->tx == 0) { b->phase ^= 1; b->pending = b->expected; S->progress++; } }
void barrier_init(void *p, unsigned n) { *B(p) = {0, n, n, 0}; S->progress++; }
void barrier_arrive(void *p) { barrier *b = B(p); if (b->pending == 0) fail("too many arrivals"); b->pending--; S->progress++; turn(b); }
void barrier_expect(void *p, unsigned bytes) { barrier *b = B(p); b->tx += (int)bytes; barrier_arrive(p); }
void barrier_wait(void *p, unsigned parity) { barrier *b = B(p); while (b->phase == (parity & 1)) yield(); }
void box_copy(const CUtensorMap *m, int x, int y, int z, float *to, void *p)
{
	if (x & 3) fail("a box begins at a multiple of 16 bytes");
	if ((uintptr_t)to % 128) fail("alignment of a box in shared memory");
	if ((char *)to < S->dynp || (char *)(to + m->box[0] * m->box[1]) > S->dyn.data() + S->dyn.size()) fail("a box is outside shared memory");
	for (unsigned r = 0; r < m->box[1]; r++) for (unsigned c = 0; c < m->box[0]; c++) {
		long xx = x + (long)c, yy = y + (long)r; bool in = xx >= 0 && xx < (long)m->size[0] && yy >= 0 && yy < (long)m->size[1] && z >= 0 && z < (long)m->size[2];
		to[r * m->box[0] + c] = in ? *(const float *)((const char *)(m->base + xx) + yy * m->pitch[0] + z * m->pitch[1]) : 0;
	}
	barrier *b = B(p); b->tx -= (int)(m->box[0] * m->box[1] * 4); S->progress++; turn(b);
}
void box_store(const CUtensorMap *m, int x, int y, int z, const float *from)
{
	if (x & 3) fail("a box begins at a multiple of 16 bytes");
	if ((uintptr_t)from % 128) fail("alignment of a box in shared memory");
	for (unsigned r = 0; r < m->box[1]; r++) for (unsigned c = 0; c < m->box[0]; c++) {
		long xx = x + (long)c, yy = y + (long)r; bool in = xx >= 0 && xx < (long)m->size[0] && yy >= 0 && yy < (long)m->size[1] && z >= 0 && z < (long)m->size[2];
		if (in) *(float *)((char *)(m->base + xx) + yy * m->pitch[0] + z * m->pitch[1]) = from[r * m->box[0] + c];
	}
}
static CUresult encode(CUtensorMap *m, int, unsigned rank, void *base, const cuuint64_t *size, const cuuint64_t *pitch, const cuuint32_t *box, const cuuint32_t *, int, int, int, int)
{
	m->base = (float *)base; memcpy(m->size, size, 24); memcpy(m->pitch, pitch, 16); memcpy(m->box, box, 12);
	return rank == 3 ? CUDA_SUCCESS : (CUresult)1;
}
}
using namespace emu;
cudaError_t cudaGetLastError() { return cudaSuccess; } cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int *n) { *n = 1; return cudaSuccess; } cudaError_t cudaDriverGetVersion(int *v) { *v = 13000; return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int) { memset(p, 0, sizeof *p); strcpy(p->name, "host"); p->totalGlobalMem = 8ull << 30; p->major = getenv("EMU_OLD") ? 8 : 9; p->sharedMemPerBlockOptin = 227 * 1024; p->multiProcessorCount = 3; return cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int *v, cudaDeviceAttr a, int) { *v = a == cudaDevAttrMultiProcessorCount ? 3 : 227 * 1024; return cudaSuccess; }
const char *cudaGetErrorString(cudaError_t) { return "error"; }
cudaError_t cudaMalloc(void **p, size_t n) { if (n > (8ull << 30)) return cudaErrorMemoryAllocation; *p = aligned_alloc(256, (n + 255) / 256 * 256); if (*p) memset(*p, 0xff, n); return *p ? cudaSuccess : cudaErrorMemoryAllocation; }
cudaError_t cudaFree(void *p) { free(p); return cudaSuccess; }
cudaError_t cudaMallocHost(void **p, size_t n) { return cudaMalloc(p, n); } cudaError_t cudaFreeHost(void *p) { return cudaFree(p); }
cudaError_t cudaMemGetInfo(size_t *f, size_t *t) { *f = *t = 8ull << 30; return cudaSuccess; }
cudaError_t cudaMemcpyAsync(void *d, const void *s, size_t n, cudaMemcpyKind, cudaStream_t) { memcpy(d, s, n); return cudaSuccess; }
cudaError_t cudaMemcpy(void *d, const void *s, size_t n, cudaMemcpyKind) { memcpy(d, s, n); return cudaSuccess; }
cudaError_t cudaMemsetAsync(void *d, int v, size_t n, cudaStream_t) { memset(d, v, n); return cudaSuccess; }
static int one;
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned) { *s = &one; return cudaSuccess; } cudaError_t cudaStreamCreate(cudaStream_t *s) { *s = &one; return cudaSuccess; }
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; } cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t *s) { *s = &one; return cudaSuccess; } cudaError_t cudaEventCreateWithFlags(cudaEvent_t *s, unsigned) { *s = &one; return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; } cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; } cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t) { *ms = 1; return cudaSuccess; }
cudaError_t cudaGetDriverEntryPointByVersion(const char *, void **f, unsigned, unsigned long long, cudaDriverEntryPointQueryResult *r) { *f = (void *)encode; *r = cudaDriverEntryPointSuccess; return cudaSuccess; }
