/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg2000_loss.cc - find what a JPEG 2000 code stream (ISO 15444-1) has lost, from its headers and packet headers.
 *
 * The reversible wavelet alone proves nothing: an encoder with a rate to keep leaves out the lowest bit planes of code-blocks,
 * and a transcoder leaves out packets. A code-block in a sub-band of M planes, of which Z are zero, has 3 (M - Z) - 2 coding
 * passes (D.3, B.10.5, equation E-2), and the packet headers say how many of them are in the stream (B.10.6). OpenJPEG 2.0, also
 * in GDCM, does not write the last passes of a block if they change nothing: one or two in each block, planes in a few. So blocks
 * that lack planes are a loss if they are many.
 *
 * One component, not subsampled. A code-block in no packet counts as zero: an encoder that drops planes drops them of many
 * blocks. A tile whose packets do not end where its data end was not understood, and nothing is said about it. */
#include "dicom/pixels/jpeg2000_loss.hh"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "dicom/core/element.hh"

namespace tomonode
{

/* limits of a tile, above any real one */
constexpr size_t blocks_max = 1u << 20, precincts_max = 1u << 16;
constexpr unsigned levels_max = 32;

constexpr size_t cut_most = 8; /* one code-block of so many may lack planes where nothing was left out */

namespace
{

enum Marker : unsigned {
	SOC = 0xff4f,
	SIZ = 0xff51,
	COD = 0xff52,
	COC = 0xff53,
	QCD = 0xff5c,
	QCC = 0xff5d,
	RGN = 0xff5e,
	POC = 0xff5f,
	PPM = 0xff60,
	PPT = 0xff61,
	SOT = 0xff90,
	SOP = 0xff91,
	EPH = 0xff92,
	SOD = 0xff93,
	EOC = 0xffd9,
};

struct Bytes {
	const unsigned char *p;
	size_t n;
};

/* What the marker segments of a header say about the component. */
struct Header {
	bool followed = true;	   /* without options that are not followed */
	bool contradicted = false; /* OpenJPEG would use another segment than the one that counts */
	bool coded = false, quantised = false;
	bool sop = false, eph = false;
	unsigned order = 0, layers = 0, levels = 0, width = 0, height = 0; /* of a code-block: log2 */
	unsigned style = 0;						   /* of its coding */
	bool reversible = false;
	unsigned char precinct[levels_max + 1]; /* of a resolution: log2 of width and height, 4 bits each */
	unsigned guard = 0, step = 0;		/* guard bits, style of the quantisation */
	unsigned char exponent[3 * levels_max + 1];
};

struct Tile {
	Header header;
	bool begun = false;
	std::vector<Bytes> parts;
};

struct Rect {
	uint64_t x0, y0, x1, y1;
};

/* The bits of a packet header: after a byte FF follow 7 bits in a byte (B.10.1). */
class Bits
{
      public:
	Bits(const unsigned char *p, size_t at, size_t end) : p_(p), at_(at), end_(end)
	{
	}
	unsigned get()
	{
		if (left_ == 0) {
			left_ = byte_ == 0xff ? 7 : 8;
			failed_ = failed_ || at_ == end_;
			byte_ = failed_ ? 0 : p_[at_++];
		}
		return byte_ >> --left_ & 1u;
	}
	uint64_t get(unsigned n)
	{
		uint64_t v = 0;

		while (n-- > 0)
			v = v << 1 | get();
		return v;
	}
	/* Return the position of the byte after the header. */
	size_t end()
	{
		if (byte_ == 0xff && at_ < end_)
			at_++;
		return at_;
	}
	bool failed() const
	{
		return failed_;
	}

      private:
	const unsigned char *p_;
	size_t at_, end_;
	unsigned byte_ = 0, left_ = 0;
	bool failed_ = false;
};

/* A tag tree (B.10.2). */
class TagTree
{
      public:
	void create(size_t width, size_t height)
	{
		size_t first = 0;

		for (;; width = (width + 1) / 2, height = (height + 1) / 2) {
			size_t n = width * height, above = first + n, across = (width + 1) / 2;

			nodes_.resize(above);
			for (size_t i = 0; i < n; i++)
				nodes_[first + i].parent = n > 1 ? (uint32_t)(above + i / width / 2 * across + i % width / 2) : 0;
			if (n <= 1)
				return;
			first = above;
		}
	}
	/* Is the value of the leaf below the threshold? Read bits until that is known. */
	bool below(size_t leaf, uint32_t threshold, Bits *bits)
	{
		uint32_t path[24], low = 0;
		size_t n = 0;

		for (path[n++] = (uint32_t)leaf; nodes_[path[n - 1]].parent > 0; n++)
			path[n] = nodes_[path[n - 1]].parent;
		while (n-- > 0) {
			Node &node = nodes_[path[n]];

			low = std::max(low, node.low);
			while (low < threshold && low < node.value) {
				if (bits->get())
					node.value = low;
				else
					low++;
			}
			node.low = low;
		}
		return nodes_[leaf].value < threshold;
	}

      private:
	struct Node {
		uint32_t parent, low = 0, value = UINT32_MAX; /* parent 0: the root */
	};
	std::vector<Node> nodes_;
};

struct Block {
	unsigned planes = 0; /* that are not zero; 0: in no packet yet */
	unsigned passes = 0;
	unsigned length_bits = 3;
	unsigned segment = 0, in_segment = 0; /* passes that the code-word segment may have, and has; 0: none yet */
};

struct Band {
	Rect rect;
	unsigned planes; /* M */
};

/* The code-blocks of a sub-band in a precinct. */
struct Part {
	size_t n = 0;
	std::vector<Block> blocks;
	TagTree included, zeros;
};

struct Precinct {
	bool created = false;
	Part parts[3];
};

struct Resolution {
	Rect rect;
	unsigned log_x, log_y; /* size of a precinct */
	size_t across, down;   /* number of precincts */
	unsigned n_bands;
	Band bands[3];
	std::vector<Precinct> precincts;
};

enum class Verdict { lossless, unknown, lossy };

struct Loss {
	Verdict verdict = Verdict::unknown;
	unsigned passes = 0, of = 0; /* most coding passes that a code-block lacks, and how many it should have */
	size_t blocks = 0, cut = 0;  /* code-blocks in the packets, and how many of them lack more than the end of a plane */
	size_t packets = 0, packets_of = 0;
};

} // namespace

static uint64_t shift_up(uint64_t v, unsigned n) /* v / 2^n, rounded up */
{
	return (v + (1ull << n) - 1) >> n;
}

/* ---- marker segments ---- */

/* Read levels, code-blocks, wavelet and precincts, which COD and COC have in common. */
static bool read_coding(const unsigned char *p, size_t n, bool has_precincts, Header *h)
{
	if (n < 5 || p[0] > levels_max || (has_precincts && n < 6u + p[0]))
		return false;
	h->levels = p[0];
	h->width = (p[1] & 15u) + 2;
	h->height = (p[2] & 15u) + 2;
	h->style = p[3];
	h->reversible = p[4] == 1;
	for (unsigned r = 0; r <= h->levels; r++)
		h->precinct[r] = has_precincts ? p[5 + r] : 0xff;
	h->coded = true;
	return true;
}

static bool read_steps(const unsigned char *p, size_t n, Header *h)
{
	if (n < 2)
		return false;
	h->step = p[0] & 31u;
	h->guard = p[0] >> 5;
	std::fill(h->exponent, h->exponent + sizeof(h->exponent), (unsigned char)0);
	for (size_t i = 0; i + 1 < n && i < sizeof(h->exponent); i++)
		h->exponent[i] = p[i + 1] >> 3;
	h->quantised = true;
	return true;
}

static bool same_coding(const Header &a, const Header &b)
{
	return a.levels == b.levels && a.width == b.width && a.height == b.height && a.style == b.style &&
	       a.reversible == b.reversible && std::equal(a.precinct, a.precinct + a.levels + 1, b.precinct);
}

static bool same_steps(const Header &a, const Header &b)
{
	return a.step == b.step && a.guard == b.guard && std::equal(std::begin(a.exponent), std::end(a.exponent), b.exponent);
}

/* Read a segment of the image, COD or QCD. If the component has its own, that one counts, but OpenJPEG uses the last one: the two must
 * agree then. */
template <class Read, class Same> static bool read_common(Header *h, bool own, const Read &read, const Same &same)
{
	Header late = *h;

	if (!own)
		return read(h);
	if (!read(&late))
		return false;
	h->contradicted = h->contradicted || !same(late, *h);
	return true;
}

/* Read a segment: p, n: what follows its length. own: the headers of this component alone (COC, QCC) were read in this header. */
static bool read_segment(unsigned marker, const unsigned char *p, size_t n, Header *h, bool own[2])
{
	switch (marker) {
	case COD:
		if (n < 10)
			return false;
		h->sop = p[0] & 2;
		h->eph = p[0] & 4;
		h->order = p[1];
		h->layers = be16(p + 2);
		return read_common(
			h, own[0], [&](Header *to) { return read_coding(p + 5, n - 5, p[0] & 1, to); }, same_coding);
	case COC:
		own[0] = true;
		return n >= 7 && read_coding(p + 2, n - 2, p[1] & 1, h);
	case QCD:
		return read_common(
			h, own[1], [&](Header *to) { return read_steps(p, n, to); }, same_steps);
	case QCC:
		own[1] = true;
		return n >= 3 && read_steps(p + 1, n - 1, h);
	case RGN:
	case POC:
	case PPM:
	case PPT:
		h->followed = false;
		return true;
	default:
		return true;
	}
}

/* Read the segments from `at` to the marker `last`, and set *ret_end to the byte after it. */
static int read_header(const std::vector<unsigned char> &code, size_t at, unsigned last, Header *h, size_t *ret_end,
		       struct err *err)
{
	bool own[2] = {false, false};

	while (at + 4 <= code.size() && be16(&code[at]) != last) {
		unsigned marker = be16(&code[at]);
		size_t size = be16(&code[at + 2]);

		if (marker < 0xff00 || size < 2 || size > code.size() - at - 2 ||
		    !read_segment(marker, &code[at + 4], size - 2, h, own))
			return err_set(err, EBADMSG, "cannot be decoded: JPEG 2000 segment %04X at byte %zu of %zu is damaged",
				       marker, at, code.size());
		at += 2 + size;
	}
	if (at + 2 > code.size() || be16(&code[at]) != last)
		return err_set(err, EBADMSG, "cannot be decoded: a JPEG 2000 code stream of %zu bytes that ends in a header",
			       code.size());
	*ret_end = at + 2;
	return 0;
}

/* Read the tile-parts from `at` on, which is the byte after the first SOT. */
static int read_tiles(const std::vector<unsigned char> &code, size_t at, const Header &common, std::vector<Tile> *tiles,
		      struct err *err)
{
	for (;;) {
		size_t start = at - 2, stop = code.size(), end, data;
		int r;

		if (stop >= 3 && code[stop - 1] == 0 && be16(&code[stop - 3]) == EOC) /* padded */
			stop--;
		if (be16(&code[stop - 2]) == EOC)
			stop -= 2;

		if (at + 10 > code.size() || be16(&code[at]) != 10 || be16(&code[at + 2]) >= tiles->size())
			return err_set(err, EBADMSG, "cannot be decoded: the JPEG 2000 tile-part at byte %zu of %zu is damaged",
				       start, code.size());
		Tile &tile = (*tiles)[be16(&code[at + 2])];
		uint32_t size = be32(&code[at + 4]);

		end = size ? start + size : stop;
		if (!tile.begun)
			tile.header = common;
		tile.begun = true;
		r = read_header(code, at + 10, SOD, &tile.header, &data, err);
		if (r < 0)
			return r;
		if (end > code.size() || end < data)
			return err_set(err, EBADMSG,
				       "cannot be decoded: the JPEG 2000 tile-part at byte %zu declares %u bytes, but %zu remain",
				       start, size, code.size() - start);
		tile.parts.push_back({code.data() + data, end - data});
		at = end + 2;
		if (at > code.size() || be16(&code[end]) != SOT)
			return 0;
	}
}

/* ---- geometry (annex B) ---- */

static Band band_of(const Rect &tile, unsigned level, unsigned x, unsigned y, unsigned planes)
{
	uint64_t half_x = level ? (uint64_t)x << (level - 1) : 0, half_y = level ? (uint64_t)y << (level - 1) : 0;
	/* the coordinates cannot become negative: those below `half` belong to 0 */
	auto at = [&](uint64_t v, uint64_t half) { return v > half ? shift_up(v - half, level) : 0; };

	return {{at(tile.x0, half_x), at(tile.y0, half_y), at(tile.x1, half_x), at(tile.y1, half_y)}, planes};
}

/* Describe the resolutions of a tile. False: more precincts than are followed. */
static bool list_resolutions(const Rect &tile, const Header &h, std::vector<Resolution> *ret)
{
	size_t total = 0;

	for (unsigned r = 0; r <= h.levels; r++) {
		unsigned down = h.levels - r;
		Resolution res = {};

		res.rect = {shift_up(tile.x0, down), shift_up(tile.y0, down), shift_up(tile.x1, down), shift_up(tile.y1, down)};
		res.log_x = h.precinct[r] & 15u;
		res.log_y = h.precinct[r] >> 4;
		if (r > 0 && (res.log_x == 0 || res.log_y == 0))
			return false;
		if (res.rect.x1 > res.rect.x0 && res.rect.y1 > res.rect.y0) {
			res.across = (size_t)(shift_up(res.rect.x1, res.log_x) - (res.rect.x0 >> res.log_x));
			res.down = (size_t)(shift_up(res.rect.y1, res.log_y) - (res.rect.y0 >> res.log_y));
		}
		res.n_bands = r == 0 ? 1 : 3;
		for (unsigned b = 0; b < res.n_bands; b++) {
			unsigned place = r == 0 ? 0 : b + 1, index = r == 0 ? 0 : 3 * (r - 1) + b + 1;

			res.bands[b] = band_of(tile, r == 0 ? h.levels : down + 1, place & 1, place >> 1,
					       h.guard + h.exponent[index] - 1u);
		}
		if (res.across > precincts_max || res.down > precincts_max || (total += res.across * res.down) > precincts_max)
			return false;
		res.precincts.resize(res.across * res.down);
		ret->push_back(std::move(res));
	}
	return true;
}

/* List the code-blocks of a precinct. False: more than are followed. */
static bool create_precinct(const Resolution &res, bool lowest, const Header &h, size_t index, size_t *blocks, Precinct *ret)
{
	unsigned half = lowest ? 0 : 1, log_x = res.log_x - half, log_y = res.log_y - half;
	unsigned width = std::min(h.width, log_x), height = std::min(h.height, log_y);
	uint64_t i = (res.rect.x0 >> res.log_x) + index % res.across, j = (res.rect.y0 >> res.log_y) + index / res.across;

	ret->created = true;
	for (unsigned b = 0; b < res.n_bands; b++) {
		const Rect &band = res.bands[b].rect;
		Rect in = {std::max(band.x0, i << log_x), std::max(band.y0, j << log_y), std::min(band.x1, (i + 1) << log_x),
			   std::min(band.y1, (j + 1) << log_y)};

		if (in.x1 <= in.x0 || in.y1 <= in.y0)
			continue;
		size_t across = (size_t)(shift_up(in.x1, width) - (in.x0 >> width));
		size_t down = (size_t)(shift_up(in.y1, height) - (in.y0 >> height));

		if (across > blocks_max || down > blocks_max || (*blocks += across * down) > blocks_max)
			return false;
		Part &part = ret->parts[b];
		part.n = across * down;
		part.blocks.resize(part.n);
		part.included.create(across, down);
		part.zeros.create(across, down);
	}
	return true;
}

/* ---- packet headers (B.10) ---- */

static unsigned read_passes(Bits *bits)
{
	unsigned v;

	if (!bits->get())
		return 1;
	if (!bits->get())
		return 2;
	v = (unsigned)bits->get(2);
	if (v < 3)
		return 3 + v;
	v = (unsigned)bits->get(5);
	if (v < 31)
		return 6 + v;
	return 37 + (unsigned)bits->get(7);
}

/* Begin the next code-word segment: how many passes it may have (D.4). */
static void next_segment(unsigned style, Block *block)
{
	constexpr unsigned bypass = 1, terminate = 4;

	block->segment = style & terminate     ? 1
			 : !(style & bypass)   ? UINT32_MAX
			 : block->segment == 0 ? 10
			 : block->segment == 2 ? 1
					       : 2;
	block->in_segment = 0;
}

/* Read the lengths of n passes of a block, and add them. False: an impossible length. */
static bool read_lengths(Bits *bits, unsigned style, unsigned n, Block *block, uint64_t *length)
{
	while (bits->get() && block->length_bits < 40)
		block->length_bits++;
	while (n > 0 && !bits->failed()) {
		unsigned part, extra = 0;

		if (block->in_segment == block->segment)
			next_segment(style, block);
		part = std::min(block->segment - block->in_segment, n);
		while (part >> (extra + 1))
			extra++;
		if (block->length_bits + extra > 40)
			return false;
		*length += bits->get(block->length_bits + extra);
		block->in_segment += part;
		n -= part;
	}
	return true;
}

/* Read what a packet says about a code-block. False: it is impossible. */
static bool read_block(Bits *bits, const Band &band, unsigned style, unsigned layer, Part *part, size_t k, uint64_t *length)
{
	Block &block = part->blocks[k];
	unsigned zeros = 0, n;

	if (block.planes == 0) {
		if (!part->included.below(k, layer + 1, bits))
			return true;
		while (!part->zeros.below(k, zeros + 1, bits))
			if (++zeros >= band.planes || bits->failed())
				return false;
		block.planes = band.planes - zeros;
	} else if (!bits->get()) {
		return true;
	}
	n = read_passes(bits);
	block.passes += n;
	return block.passes <= 3 * block.planes - 2 && read_lengths(bits, style, n, &block, length);
}

/* Follow a packet from *at on. False: it is not understood. */
static bool read_packet(const Bytes &data, const Header &h, Resolution *res, Precinct *precinct, unsigned layer, size_t *at)
{
	uint64_t length = 0;

	if (h.sop && *at + 6 <= data.n && be16(data.p + *at) == SOP)
		*at += 6;
	Bits bits(data.p, *at, data.n);

	if (bits.get())
		for (unsigned b = 0; b < res->n_bands; b++)
			for (size_t k = 0; k < precinct->parts[b].n; k++)
				if (!read_block(&bits, res->bands[b], h.style, layer, &precinct->parts[b], k, &length) ||
				    bits.failed())
					return false;
	if (bits.failed())
		return false;
	*at = bits.end();
	if (h.eph && *at + 2 <= data.n && be16(data.p + *at) == EPH)
		*at += 2;
	if (length > data.n - *at)
		return false;
	*at += (size_t)length;
	return true;
}

/* ---- the packets of a tile, in their order (B.12) ---- */

namespace
{

struct Step {
	unsigned resolution;
	size_t precinct;
	unsigned layer;
};

struct Place {
	uint64_t y, x;
	unsigned resolution;
	size_t precinct;
};

} // namespace

/* List the precincts by their places in the image, those of low resolutions first. */
static std::vector<Place> list_places(const std::vector<Resolution> &all, const Rect &tile, unsigned levels)
{
	std::vector<Place> places;

	for (unsigned r = 0; r < all.size(); r++)
		for (size_t p = 0; p < all[r].precincts.size(); p++) {
			unsigned down = levels - r;
			uint64_t i = (all[r].rect.x0 >> all[r].log_x) + p % all[r].across;
			uint64_t j = (all[r].rect.y0 >> all[r].log_y) + p / all[r].across;

			places.push_back({std::max(tile.y0, j << (all[r].log_y + down)),
					  std::max(tile.x0, i << (all[r].log_x + down)), r, p});
		}
	std::stable_sort(places.begin(), places.end(), [](const Place &a, const Place &b) {
		return a.y != b.y ? a.y < b.y : a.x != b.x ? a.x < b.x : a.resolution < b.resolution;
	});
	return places;
}

/* Call visit() for each packet in the order of the tile, until it returns false. */
template <class Visit>
static void visit_packets(const std::vector<Resolution> &all, const Rect &tile, const Header &h, const Visit &visit)
{
	enum { by_layer, by_resolution, by_resolution_and_place };
	auto each_precinct = [&](unsigned r, unsigned layer) {
		for (size_t p = 0; p < all[r].precincts.size(); p++)
			if (!visit(Step{r, p, layer}))
				return false;
		return true;
	};

	if (h.order == by_layer) {
		for (unsigned layer = 0; layer < h.layers; layer++)
			for (unsigned r = 0; r < all.size(); r++)
				if (!each_precinct(r, layer))
					return;
	} else if (h.order == by_resolution) {
		for (unsigned r = 0; r < all.size(); r++)
			for (unsigned layer = 0; layer < h.layers; layer++)
				if (!each_precinct(r, layer))
					return;
	} else if (h.order == by_resolution_and_place) { /* of one component: as they are numbered */
		for (unsigned r = 0; r < all.size(); r++)
			for (size_t p = 0; p < all[r].precincts.size(); p++)
				for (unsigned layer = 0; layer < h.layers; layer++)
					if (!visit(Step{r, p, layer}))
						return;
	} else {
		for (const Place &place : list_places(all, tile, h.levels))
			for (unsigned layer = 0; layer < h.layers; layer++)
				if (!visit(Step{place.resolution, place.precinct, layer}))
					return;
	}
}

/* Count the code-blocks that lack passes, and find that which lacks most. */
static void count_passes(const std::vector<Resolution> &all, Loss *loss)
{
	for (const Resolution &res : all)
		for (const Precinct &precinct : res.precincts)
			for (const Part &part : precinct.parts)
				for (const Block &block : part.blocks) {
					unsigned of = block.planes ? 3 * block.planes - 2 : 0;

					loss->blocks += of > 0;
					loss->cut += of - block.passes > 2;
					if (of - block.passes > loss->passes) {
						loss->passes = of - block.passes;
						loss->of = of;
					}
				}
}

static bool can_follow(const Header &h)
{
	return h.followed && h.coded && h.quantised && h.step == 0 && h.guard > 0 && h.order <= 4 && h.layers > 0 &&
	       h.width <= 10 && h.height <= 10 && h.width + h.height <= 12;
}

static Loss find_loss(const Rect &rect, const Tile &tile)
{
	const Header &h = tile.header;
	std::vector<Resolution> all;
	std::vector<unsigned char> bytes;
	size_t at = 0, blocks = 0;
	bool understood = true;
	Loss loss;

	for (const Bytes &part : tile.parts)
		bytes.insert(bytes.end(), part.p, part.p + part.n);
	if (!can_follow(h) || !list_resolutions(rect, h, &all))
		return loss;
	const Bytes data = {bytes.data(), bytes.size()};

	visit_packets(all, rect, h, [&](const Step &s) {
		Resolution &res = all[s.resolution];
		Precinct &precinct = res.precincts[s.precinct];

		if (at == data.n)
			return false;
		understood = (precinct.created || create_precinct(res, s.resolution == 0, h, s.precinct, &blocks, &precinct)) &&
			     read_packet(data, h, &res, &precinct, s.layer, &at);
		loss.packets += understood;
		return understood;
	});
	if (!understood || at != data.n)
		return loss;
	for (const Resolution &res : all)
		loss.packets_of += res.precincts.size() * h.layers;
	count_passes(all, &loss);
	loss.verdict = loss.packets < loss.packets_of || cut_most * loss.cut > loss.blocks ? Verdict::lossy
		       : loss.passes > 0						   ? Verdict::unknown
											   : Verdict::lossless;
	return loss;
}

static int judge_tile(const Rect &rect, const Tile &tile, size_t index, struct err *err)
{
	constexpr unsigned high_throughput = 0x40;

	if (!tile.begun)
		return err_set(err, EBADMSG, "cannot be decoded: JPEG 2000 tile %zu is not in the code stream", index);
	if (tile.header.contradicted)
		return err_set(err, ENOTSUP,
			       "cannot be decoded: a JPEG 2000 frame with a segment COC or QCC before a COD or QCD that differs: "
			       "OpenJPEG would use the wrong one");
	if (!tile.header.reversible)
		return err_set(err, ENOTSUP,
			       "cannot be decoded: a JPEG 2000 frame with the irreversible wavelet, which is lossy");
	if (tile.header.style & high_throughput)
		return err_set(err, ENOTSUP,
			       "cannot be decoded: a JPEG 2000 frame with code-blocks of HTJ2K, of which it is not known whether "
			       "they are lossy");
	Loss loss = find_loss(rect, tile);

	if (loss.verdict != Verdict::lossy)
		return loss.verdict == Verdict::unknown;
	if (loss.packets < loss.packets_of)
		return err_set(err, ENOTSUP, "cannot be decoded: a JPEG 2000 frame with %zu of %zu packets, which is lossy",
			       loss.packets, loss.packets_of);
	return err_set(err, ENOTSUP,
		       "cannot be decoded: a JPEG 2000 frame with %u of %u coding passes of a code-block, which is lossy",
		       loss.of - loss.passes, loss.of);
}

int jpeg2000_find_loss(const std::vector<unsigned char> &code, struct err *err)
{
	constexpr size_t siz = 4, siz_size = 41, tiles_max = 65535;
	std::vector<Tile> tiles;
	bool unknown = false;
	Header common;
	size_t at;

	if (code.size() < siz + siz_size || be16(code.data()) != SOC || be16(&code[2]) != SIZ)
		return err_set(err, EBADMSG, "cannot be decoded: not a JPEG 2000 code stream");
	const unsigned char *p = &code[siz + 4]; /* behind Lsiz and Rsiz */
	const Rect image = {be32(p + 8), be32(p + 12), be32(p), be32(p + 4)};
	const uint64_t width = be32(p + 16), height = be32(p + 20), x0 = be32(p + 24), y0 = be32(p + 28);

	if (width == 0 || height == 0 || x0 > image.x0 || y0 > image.y0 || image.x1 <= image.x0 || image.y1 <= image.y0)
		return err_set(err, EBADMSG, "cannot be decoded: a JPEG 2000 frame in tiles of %llu x %llu at %llu, %llu",
			       (unsigned long long)width, (unsigned long long)height, (unsigned long long)x0,
			       (unsigned long long)y0);
	uint64_t across = (image.x1 - x0 + width - 1) / width, down = (image.y1 - y0 + height - 1) / height;

	if (across > tiles_max || down > tiles_max || across * down > tiles_max)
		return err_set(err, EBADMSG, "cannot be decoded: a JPEG 2000 frame of %llu x %llu tiles",
			       (unsigned long long)across, (unsigned long long)down);
	tiles.resize((size_t)(across * down));
	common.followed = p[35] == 1 && p[36] == 1; /* not subsampled */
	int r = read_header(code, 2, SOT, &common, &at, err);
	if (r == 0)
		r = read_tiles(code, at, common, &tiles, err);
	for (size_t k = 0; r >= 0 && k < tiles.size(); k++) {
		uint64_t i = k % across, j = k / across;

		r = judge_tile({std::max(image.x0, x0 + i * width), std::max(image.y0, y0 + j * height),
				std::min(image.x1, x0 + (i + 1) * width), std::min(image.y1, y0 + (j + 1) * height)},
			       tiles[k], k, err);
		unknown = unknown || r > 0;
	}
	return r < 0 ? r : unknown;
}

} // namespace tomonode
