/* SPDX-License-Identifier: Apache-2.0 */
/* A small PETSIRD file made byte by byte, for tests: two types of modules, five time blocks. The schema has the names of PETSIRD
 * and only the fields that matter, and one field of every other kind, `extra`. Places in the bytes have marks, where a test puts
 * in something else. */
#ifndef TOMONODE_TESTS_PETSIRD_FIXTURE_H
#define TOMONODE_TESTS_PETSIRD_FIXTURE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The schema with ' instead of "; petsird_fixture_start() replaces them. */
static char petsird_fixture_schema[] =
	"{'protocol':{'name':'PETSIRD','sequence':[{'name':'header','type':'PETSIRD.Header'},{'name':'timeBlocks',"
	"'type':{'stream':{'items':'PETSIRD.TimeBlock'}}}]},'types':["
	"{'name':'Extra','fields':[{'name':'a','type':'string'},{'name':'b','type':{'map':{'keys':'string','values':"
	"'int16'}}},{'name':'c','type':[null,'int8','float64']},{'name':'d','type':{'array':{'items':'uint16'}}},{"
	"'name':'e','type':{'array':{'items':'bool','dimensions':[{'length':2},{'length':3}]}}},{'name':'f','type':"
	"'complexfloat32'},{'name':'g','type':'PETSIRD.Choice'},{'name':'h','type':{'vector':{'items':'float32'}}}]}"
	",{'name':'Choice','values':[{'symbol':'none','value':0}]}"
	",{'name':'LowerTriangularMatrix','typeParameters':['T'],'type':{'vector':{'items':{'vector':{'items':'T'}}}}}"
	",{'name':'ReplicatedObject','typeParameters':['T'],'fields':[{'name':'object','type':'T'},{'name':"
	"'transforms','type':{'vector':{'items':'PETSIRD.RigidTransformation'}}}]}"
	",{'name':'RigidTransformation','fields':[{'name':'matrix','type':{'array':{'items':'float32','dimensions':[{"
	"'length':3},{'length':4}]}}}]}"
	",{'name':'Coordinate','fields':[{'name':'c','type':{'array':{'items':'float32','dimensions':[{'length':"
	"3}]}}}]}"
	",{'name':'BoxShape','fields':[{'name':'corners','type':{'vector':{'items':'PETSIRD.Coordinate','length':8}}}]}"
	",{'name':'BoxSolidVolume','fields':[{'name':'shape','type':'PETSIRD.BoxShape'},{'name':'materialId','type':"
	"'uint32'}]}"
	",{'name':'DetectorModule','fields':[{'name':'detectingElements','type':{'name':'PETSIRD.ReplicatedObject',"
	"'typeArguments':['PETSIRD.BoxSolidVolume']}}]}"
	",{'name':'ScannerGeometry','fields':[{'name':'replicatedModules','type':{'vector':{'items':{'name':"
	"'PETSIRD.ReplicatedObject','typeArguments':['PETSIRD.DetectorModule']}}}}]}"
	",{'name':'BinEdges','fields':[{'name':'edges','type':{'array':{'items':'float32','dimensions':1}}}]}"
	",{'name':'ModulePairEfficiencies','fields':[{'name':'values','type':{'vector':{'items':{'vector':{'items':"
	"'float32'}}}}},{'name':'sgid','type':'int32'}]}"
	",{'name':'DetectionEfficiencies','fields':[{'name':'calibrationFactor','type':'float32'},{'name':"
	"'detectionBinEfficiencies','type':{'vector':{'items':{'vector':{'items':'float32'}}}}},{'name':"
	"'modulePairSGIDLUT','type':{'name':'PETSIRD.LowerTriangularMatrix','typeArguments':[{'vector':{'items':{"
	"'vector':{'items':'int32'}}}}]}},{'name':'modulePairEfficienciesVectors','type':{'name':"
	"'PETSIRD.LowerTriangularMatrix','typeArguments':[{'vector':{'items':'PETSIRD.ModulePairEfficiencies'}}]}}]}"
	",{'name':'ScannerInformation','fields':[{'name':'modelName','type':'string'},{'name':'extra','type':"
	"'PETSIRD.Extra'},{'name':'scannerGeometry','type':'PETSIRD.ScannerGeometry'},{'name':'tofBinEdges','type':{"
	"'name':'PETSIRD.LowerTriangularMatrix','typeArguments':['PETSIRD.BinEdges']}},{'name':'tofResolution','type':{"
	"'name':'PETSIRD.LowerTriangularMatrix','typeArguments':['float32']}},{'name':'eventEnergyBinEdges','type':{"
	"'vector':{'items':'PETSIRD.BinEdges'}}},{'name':'detectionEfficiencies','type':"
	"'PETSIRD.DetectionEfficiencies'}]}"
	",{'name':'ExamInformation','fields':[{'name':'startOfAcquisition','type':[null,'datetime']}]}"
	",{'name':'Header','fields':[{'name':'scanner','type':'PETSIRD.ScannerInformation'},{'name':'exam','type':"
	"[null,'PETSIRD.ExamInformation']}]}"
	",{'name':'TimeInterval','fields':[{'name':'start','type':'uint32'},{'name':'stop','type':'uint32'}]}"
	",{'name':'CoincidenceEvent','fields':[{'name':'detectionBins','type':{'vector':{'items':"
	"'PETSIRD.DetectionBin','length':2}}},{'name':'tofIdx','type':'uint32'}]}"
	",{'name':'DetectionBin','type':'uint32'}"
	",{'name':'EventTimeBlock','fields':[{'name':'timeInterval','type':'PETSIRD.TimeInterval'},{'name':"
	"'promptEvents','type':{'name':'PETSIRD.LowerTriangularMatrix','typeArguments':[{'vector':{'items':"
	"'PETSIRD.CoincidenceEvent'}}]}},{'name':'delayedEvents','type':{'name':'PETSIRD.LowerTriangularMatrix',"
	"'typeArguments':[{'vector':{'items':'PETSIRD.CoincidenceEvent'}}]}},{'name':'extra','type':'PETSIRD.Extra'}]}"
	",{'name':'BedMovementTimeBlock','fields':[{'name':'timeInterval','type':'PETSIRD.TimeInterval'},{'name':"
	"'transform','type':'PETSIRD.RigidTransformation'}]}"
	",{'name':'TimeBlock','type':[{'tag':'EventTimeBlock','type':'PETSIRD.EventTimeBlock'},{'tag':"
	"'BedMovementTimeBlock','type':'PETSIRD.BedMovementTimeBlock'}]}"
	"]}";

static inline void petsird_fixture_start(void)
{
	for (char *c = petsird_fixture_schema; *c; c++)
		*c = *c == '\'' ? '"' : *c;
}

enum petsird_mark {		     /* the place of ... */
		    MARK_SCHEMA,     /* the number of bytes of the schema */
		    MARK_MODEL,	     /* the length of the model's name */
		    MARK_TYPES,	     /* the number of types */
		    MARK_TRANSFORM,  /* the first number of the first element transform */
		    MARK_TRANSFORMS, /* the number of modules of type 0 */
		    MARK_TOF,	     /* the number of TOF edges of types 0, 0 */
		    MARK_ENERGY,     /* the number of lists of energy edges */
		    MARK_CALIBRATION,
		    MARK_BINS,	    /* the number of efficiencies of type 0 */
		    MARK_GROUP,	    /* the group of modules 1, 0 of type 0 */
		    MARK_GROUP_ID,  /* the index in the efficiencies of group 0 */
		    MARK_EXAM,	    /* the alternative of the exam */
		    MARK_START,	    /* the start */
		    MARK_STREAM,    /* the number of blocks in the first part of the stream */
		    MARK_BLOCK,	    /* the kind of the first block */
		    MARK_INTERVAL,  /* the start of the first event block */
		    MARK_ROWS,	    /* the number of rows of the first event block */
		    MARK_EVENTS,    /* the number of its events of types 0, 0 */
		    MARK_EVENT,	    /* the first bin of the first event */
		    MARK_EVENT_TOF, /* its TOF bin */
		    MARK_END,	    /* the 0 at the end of the stream */
		    MARKS
};

struct petsird_bytes {
	uint8_t *at;
	size_t n;
	size_t mark[MARKS];
};

static inline void put(struct petsird_bytes *o, const void *from, size_t n)
{
	o->at = realloc(o->at, o->n + n + 1);
	if (!o->at)
		abort();
	memcpy(o->at + o->n, from, n);
	o->n += n;
}

static inline void put_byte(struct petsird_bytes *o, uint8_t byte)
{
	put(o, &byte, 1);
}

static inline void put_unsigned(struct petsird_bytes *o, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		put_byte(o, (uint8_t)(v | 0x80));
	put_byte(o, (uint8_t)v);
}

static inline void put_signed(struct petsird_bytes *o, int64_t v)
{
	put_unsigned(o, v < 0 ? ~((uint64_t)v << 1) : (uint64_t)v << 1);
}

static inline void put_text(struct petsird_bytes *o, const char *text)
{
	put_unsigned(o, strlen(text));
	put(o, text, strlen(text));
}

static inline void put_floats(struct petsird_bytes *o, size_t n, const float *v)
{
	put(o, v, n * sizeof(*v));
}

static inline void put_list(struct petsird_bytes *o, size_t n, const float *v)
{
	put_unsigned(o, n);
	put_floats(o, n, v);
}

static inline void put_extra(struct petsird_bytes *o)
{
	static const float numbers[] = {1, 2, 3};

	put_text(o, "text");
	put_unsigned(o, 2);
	put_text(o, "key");
	put_signed(o, -300);
	put_text(o, "");
	put_signed(o, 300);
	put_byte(o, 2);
	put(o, "12345678", 8);
	put_unsigned(o, 3); /* rank */
	put_unsigned(o, 1);
	put_unsigned(o, 2);
	put_unsigned(o, 1);
	put_unsigned(o, 60000);
	put_unsigned(o, 1);
	put(o, "\0\1\0\1\0\1", 6);
	put(o, "12345678", 8);
	put_signed(o, -1);
	put_list(o, 3, numbers);
}

/* Modules around the z axis: `modules` quarter turns from +x; elements 4 mm apart in z. The box is 20 x 4 x 2 mm and starts at
 * 0. */
static inline void put_modules(struct petsird_bytes *o, float radius, int elements, int modules, bool first)
{
	static const float turn[4][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};

	for (int i = 0; i < 8; i++) {
		float c[3] = {i & 4 ? 20.0f : 0.0f, i & 2 ? 4.0f : 0.0f, i & 1 ? 2.0f : 0.0f};

		put_floats(o, 3, c);
	}
	put_unsigned(o, 1);
	put_unsigned(o, (uint64_t)elements);
	for (int i = 0; i < elements; i++) {
		float m[12] = {1, 0, 0, radius, 0, 1, 0, -2, 0, 0, 1, 4.0f * (float)i};

		if (first && i == 0)
			o->mark[MARK_TRANSFORM] = o->n;
		put_floats(o, 12, m);
	}
	if (first)
		o->mark[MARK_TRANSFORMS] = o->n;
	put_unsigned(o, (uint64_t)modules);
	for (int i = 0; i < modules; i++) {
		float c = turn[i][0], s = turn[i][1], m[12] = {c, -s, 0, 0, s, c, 0, 0, 0, 0, 1, 1};

		put_floats(o, 12, m);
	}
}

static inline void put_efficiencies(struct petsird_bytes *o)
{
	float bins[16], calibration = 2.5f;

	o->mark[MARK_CALIBRATION] = o->n;
	put_floats(o, 1, &calibration);
	put_unsigned(o, 2);
	o->mark[MARK_BINS] = o->n;
	for (int i = 0; i < 16; i++)
		bins[i] = (float)(i + 1);
	put_list(o, 16, bins); /* 4 modules of 2 elements with 2 energies */
	put_unsigned(o, 0);    /* none for type 1: 1 */
	put_unsigned(o, 2);    /* groups: a triangle of types 0, 0, then types 1, 0: all 0, and 1, 1: none */
	put_unsigned(o, 1);
	put_unsigned(o, 4);
	for (int i = 0; i < 4; i++) {
		put_unsigned(o, (uint64_t)i + 1);
		for (int j = 0; j <= i; j++) {
			if (i == 1 && j == 0)
				o->mark[MARK_GROUP] = o->n;
			put_signed(o, i == j ? -1 : (i + j) % 2);
		}
	}
	put_unsigned(o, 2);
	put_unsigned(o, 0);
	put_unsigned(o, 0);
	put_unsigned(o, 2); /* values: of types 0, 0 only */
	put_unsigned(o, 1);
	put_unsigned(o, 2);
	for (int group = 0; group < 2; group++) {
		put_unsigned(o, 4);
		for (int a = 0; a < 4; a++) {
			float row[4];

			for (int b = 0; b < 4; b++)
				row[b] = (float)(100 * group + 10 * a + b);
			put_list(o, 4, row);
		}
		if (group == 0)
			o->mark[MARK_GROUP_ID] = o->n;
		put_signed(o, group);
	}
	put_unsigned(o, 2);
	put_unsigned(o, 0);
	put_unsigned(o, 0);
}

static inline void put_scanner(struct petsird_bytes *o)
{
	static const float tof[3][4] = {{-30, -10, 10, 30}, {-100, 100}, {-50, 0, 50}};
	static const float energies[3] = {435, 500, 650};
	static const float resolution[3] = {12, 13, 14};

	o->mark[MARK_MODEL] = o->n;
	put_text(o, "TEST\n1");
	put_extra(o);
	o->mark[MARK_TYPES] = o->n;
	put_unsigned(o, 2);
	put_modules(o, 100, 2, 4, true);
	put_modules(o, 50, 1, 3, false);
	put_unsigned(o, 2);
	put_unsigned(o, 1);
	o->mark[MARK_TOF] = o->n;
	put_list(o, 4, tof[0]);
	put_unsigned(o, 3); /* one more than the triangle has */
	put_list(o, 2, tof[1]);
	put_list(o, 3, tof[2]);
	put_list(o, 2, tof[1]);
	put_unsigned(o, 2);
	put_list(o, 1, resolution);
	put_list(o, 2, resolution + 1);
	o->mark[MARK_ENERGY] = o->n;
	put_unsigned(o, 2);
	put_list(o, 3, energies);
	put_list(o, 2, energies);
	put_efficiencies(o);
}

static inline void put_event(struct petsird_bytes *o, unsigned a, unsigned b, unsigned tof)
{
	put_unsigned(o, a);
	put_unsigned(o, b);
	put_unsigned(o, tof);
}

/* A block with one event of types 0, 0, two of 1, 0 and none of 1, 1; `rows`: 2, or 3 with a row that repeats the second. */
static inline void put_events(struct petsird_bytes *o, unsigned rows, bool first)
{
	if (first)
		o->mark[MARK_ROWS] = o->n;
	put_unsigned(o, rows);
	put_unsigned(o, 1);
	if (first)
		o->mark[MARK_EVENTS] = o->n;
	put_unsigned(o, 1);
	if (first)
		o->mark[MARK_EVENT] = o->n;
	put_event(o, 14, 1, 2);
	if (first)
		o->mark[MARK_EVENT_TOF] = o->n - 1;
	for (unsigned i = 1; i < rows; i++) {
		put_unsigned(o, 2);
		put_unsigned(o, 2);
		put_event(o, 2, 15, 0);
		put_event(o, 0, 0, 0);
		put_unsigned(o, 0);
	}
}

static inline void put_block(struct petsird_bytes *o, unsigned start, unsigned stop, unsigned rows, bool first)
{
	put_byte(o, 0);
	if (first)
		o->mark[MARK_INTERVAL] = o->n;
	put_unsigned(o, start);
	put_unsigned(o, stop);
	put_events(o, rows, first);
	if (rows == 3)
		put_unsigned(o, 0); /* no delayeds */
	else
		put_events(o, 2, false);
	put_extra(o);
}

static inline void put_movement(struct petsird_bytes *o)
{
	static const float m[12] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 5};

	put_byte(o, 1);
	put_unsigned(o, 0);
	put_unsigned(o, 1);
	put_floats(o, 12, m);
}

/* Make the file with a schema (NULL: the fixture's). The caller frees ret.at. */
static inline struct petsird_bytes petsird_make(const char *schema)
{
	struct petsird_bytes o = {0};

	put(&o, "yardl\1\0\0\0", 9);
	o.mark[MARK_SCHEMA] = o.n;
	put_text(&o, schema ? schema : petsird_fixture_schema);
	put_scanner(&o);
	o.mark[MARK_EXAM] = o.n;
	put_byte(&o, 1);
	put_byte(&o, 1);
	o.mark[MARK_START] = o.n;
	put_signed(&o, -1500000000);
	o.mark[MARK_STREAM] = o.n;
	put_unsigned(&o, 3);
	o.mark[MARK_BLOCK] = o.n;
	put_movement(&o);
	put_block(&o, 1000, 2000, 2, true);
	put_block(&o, 1500, 2500, 3, false);
	put_unsigned(&o, 2);
	put_movement(&o);
	put_block(&o, 300000, 300001, 2, false);
	o.mark[MARK_END] = o.n;
	put_unsigned(&o, 0);
	return o;
}

/* Replace `removed` bytes at a mark. */
static inline void petsird_replace(struct petsird_bytes *o, enum petsird_mark mark, size_t removed, const void *by, size_t n)
{
	size_t at = o->mark[mark], behind = o->n - at - removed;

	o->at = realloc(o->at, o->n + n + 1);
	if (!o->at)
		abort();
	memmove(o->at + at + n, o->at + at + removed, behind);
	memcpy(o->at + at, by, n);
	o->n = at + n + behind;
}

#endif
