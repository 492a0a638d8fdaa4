/* SPDX-License-Identifier: Apache-2.0 */
/* Look at the slices of one result, or of two side by side. Each slice is one request (node/report/look.h); the window is applied
 * here, so that dragging it needs none. Neighbours of the slice that is seen are fetched before they are asked for. A slice whose
 * request failed is asked for again after LATER, and each time that a person comes to it. */
"use strict";
(function () {
	var BYTES = 160e6, AHEAD = 8; /* kept of both sides; slices on each side */
	var FINGER = 14; /* pixels that a finger moves for each slice */
	var AGAIN = 40, WAITS = 200; /* ms until it is asked again for the slice that a person wants, for another one */
	var LATER = [2, 10, 65]; /* s after the first, second, third failure: the node keeps its own for a minute (status_look.c) */
	var section = document.getElementById("look"), makers = +section.dataset.makers, words = document.body.dataset; /* in the language of the page */
	var zoom = 1, pan = [0, 0]; /* of all sides: a factor, mm */
	var panes = Array.prototype.map.call(section.querySelectorAll(".pane"), function (e) {
		return { e: e, kept: new Map(), bytes: 0, k: +e.querySelector("[type=range]").value, total: +e.dataset.total,
			step: +e.dataset.step, way: 1, asked: new Set(), failed: new Map(), seen: 0, first: null, range: null,
			canvas: e.querySelector("canvas"), paper: document.createElement("canvas"),
			slider: e.querySelector("[type=range]"), place: e.querySelector("output"), wrong: e.querySelector(".wrong"),
			exact: +e.querySelector("[type=range]").value, wheel: 0, fingers: new Map(), turned: 0,
			black: e.querySelector(".black"), white: e.querySelector(".white") };
	});

	function linked(what) {
		var box = document.getElementById("look-link-" + what);
		return box && box.checked;
	}

	/* As on the page of the case; of PET and CT also where it is in the patient. */
	function where(p, slice) {
		var values = { n: p.k, total: p.total, mm: ((p.k - 1) * p.step).toFixed(1) };
		var text = words[p.step > 0 ? "height" : "slice"].replace(/\{(\w+)\}/g, function (all, key) { return values[key]; });
		return text + (slice && slice.axis ? ", " + slice.axis + " = " + slice.at.toFixed(1) + " mm" : "");
	}

	/* ---- slices ---- */

	function read(bytes) {
		var end = new Uint8Array(bytes).indexOf(10) + 1;
		var slice = JSON.parse(new TextDecoder().decode(bytes.slice(0, end)));
		slice.values = new Uint16Array(bytes.slice(end));
		return slice;
	}

	function keep(p, k, slice) {
		p.failed.delete(k);
		p.kept.set(k, slice);
		p.bytes += slice.values.byteLength;
		p.kept.forEach(function (one, old) { /* in the order in which they came */
			if (p.bytes > BYTES / panes.length && Math.abs(old - p.k) > AHEAD) {
				p.bytes -= one.values.byteLength;
				p.kept.delete(old);
			}
		});
		if (p.total !== slice.slices) {
			p.total = p.slider.max = slice.slices;
			p.exact = p.k = Math.min(p.k, p.total);
		}
		if (!p.first) {
			p.first = slice;
			p.range = [slice.black, slice.white];
			levels(p);
			part();
			drawAll(); /* they have one scale */
		}
	}

	/* The slice to be fetched next: that which a person wants, then its neighbours; 0: all are there, or asked for. */
	function missing(p) {
		function lacks(k) {
			return k >= 1 && k <= p.total && !p.kept.has(k) && !p.asked.has(k) && !(p.failed.has(k) && p.failed.get(k).due > Date.now());
		}
		if (lacks(p.k))
			return p.k;
		for (var i = 1; i <= AHEAD; i++) {
			if (lacks(p.k + p.way * i))
				return p.k + p.way * i;
			if (2 * i <= AHEAD && lacks(p.k - p.way * i))
				return p.k - p.way * i;
		}
		return 0;
	}

	function fail(p, k, sentence) {
		var times = p.failed.has(k) ? p.failed.get(k).times : 0, wait = times < LATER.length ? 1000 * LATER[times] : Infinity;

		p.failed.set(k, { sentence: sentence, times: times + 1, due: Date.now() + wait });
		if (wait < Infinity)
			setTimeout(load, wait + 1, p);
	}

	function complain(p) {
		p.wrong.textContent = p.failed.has(p.k) ? p.failed.get(p.k).sentence : "";
	}

	/* May one more slice be asked for that nobody looks at yet? Not where it would delay one that a person waits for. */
	function spare(p) {
		var waits = panes.some(function (o) { return o.asked.has(o.k); });
		var all = panes.reduce(function (n, o) { return n + o.asked.size; }, 0);
		return waits ? all < makers : p.asked.size < Math.max(1, makers / panes.length);
	}

	/* Ask for as many slices at once as the node makes, and always for the one that a person wants. */
	function load(p) {
		var k;

		while ((k = missing(p)) && (k === p.k || spare(p))) {
			p.asked.add(k);
			ask(p, k);
		}
	}

	/* p.asked has k until there is an answer, or nobody wants it any more. */
	function ask(p, k) {
		fetch(p.e.dataset.slices + k, { credentials: "same-origin" }).then(function (answer) {
			var text = (answer.headers.get("Content-Type") || "").indexOf("text/plain") === 0;
			if (answer.status === 202)
				return k === p.k ? AGAIN : WAITS;
			if (answer.ok)
				return answer.arrayBuffer().then(function (bytes) { keep(p, k, read(bytes)); });
			return (text ? answer.text() : Promise.resolve("HTTP " + answer.status)).then(function (sentence) {
				fail(p, k, sentence);
			});
		}).catch(function () {
			p.wrong.textContent = words.lost;
			return 3000;
		}).then(function (wait) {
			p.asked.delete(k);
			if (wait && Math.abs(k - p.k) <= AHEAD && (k === p.k || spare(p))) {
				p.asked.add(k);
				setTimeout(ask, wait, p, k);
				return;
			}
			if (!wait)
				complain(p);
			if (!wait && k === p.k)
				draw(p);
			panes.forEach(load);
		});
	}

	function show(p, k) {
		k = Math.max(1, Math.min(p.total, k));
		p.way = k < p.k ? -1 : k > p.k ? 1 : p.way;
		if (k !== p.k && p.failed.has(k))
			p.failed.get(k).times = p.failed.get(k).due = 0;
		p.k = k;
		complain(p);
		draw(p);
		load(p);
	}

	/* On one side; on the other one as many millimetres further, or slices where the distance is unknown. `exact` has fractions
	 * of a slice and what is beyond the last one, so that both sides stay together. */
	function turn(p, by) {
		var from = p.exact;

		show(p, p.k + by);
		p.exact = p.k;
		if (linked("slice"))
			panes.forEach(function (o) {
				if (o !== p) {
					o.exact += (p.k - from) * (p.step && o.step ? p.step / o.step : 1);
					show(o, Math.round(o.exact));
				}
			});
	}

	/* ---- window ---- */

	function levels(p) {
		p.black.value = +p.range[0].toPrecision(4);
		p.white.value = +p.range[1].toPrecision(4);
		p.e.querySelector(".unit").textContent = p.first.unit;
		document.getElementById("look-invert").setAttribute("aria-pressed",
			String((p.range[1] - p.range[0]) * (p.first.white - p.first.black) < 0));
	}

	/* Two results in one unit begin with the window of the first; with their own, not linked, where these are far apart. */
	function part() {
		var a = panes[0].first, b = panes[1] && panes[1].first;

		if (!linked("window") || !a || !b || !a.unit || a.unit !== b.unit)
			return;
		if (Math.abs(a.black - b.black) + Math.abs(a.white - b.white) > 0.2 * Math.abs(a.white - a.black))
			document.getElementById("look-link-window").checked = false;
		else
			level(panes[0], [a.black, a.white]);
	}

	/* The same values on the other side if they have one unit, else the same part of its window. */
	function level(p, range) {
		if (!p.first)
			return;
		p.range = range;
		panes.forEach(function (o) {
			if (o !== p && o.first && linked("window"))
				o.range = o.first.unit && o.first.unit === p.first.unit ? range.slice() : range.map(function (v) {
					return o.first.black + (v - p.first.black) / (p.first.white - p.first.black) * (o.first.white - o.first.black);
				});
			if (o.first) {
				levels(o);
				draw(o);
			}
		});
	}

	function invert() {
		panes.forEach(function (p, i) {
			if (p.first && (i === 0 || !linked("window")))
				level(p, [p.range[1], p.range[0]]);
		});
	}

	function reset() {
		zoom = 1;
		pan = [0, 0];
		panes.forEach(function (p) {
			if (p.first) {
				p.range = [p.first.black, p.first.white];
				levels(p);
			}
			draw(p);
		});
		part();
	}

	/* ---- picture ---- */

	function paint(p, slice) {
		var n = slice.values.length, width = (p.range[1] - p.range[0]) || 1e-30, gain = 255 * slice.step / width;
		var bias = 255 * (slice.lo - p.range[0]) / width, context = p.paper.getContext("2d"), image, grey;

		p.paper.width = slice.width;
		p.paper.height = slice.height;
		image = context.createImageData(slice.width, slice.height);
		grey = new Uint8ClampedArray(1); /* rounds and clamps */
		for (var i = 0, at = 0; i < n; i++, at += 4) {
			grey[0] = gain * slice.values[i] + bias;
			image.data[at] = image.data[at + 1] = image.data[at + 2] = grey[0];
			image.data[at + 3] = 255;
		}
		context.putImageData(image, 0, 0);
	}

	/* Pixels of the screen for a millimetre: the same on all sides. */
	function scale() {
		return zoom * Math.min.apply(null, panes.map(function (p) {
			return p.first ? Math.min(p.canvas.width / p.first.mm[0], p.canvas.height / p.first.mm[1]) : Infinity;
		}));
	}

	function draw(p) {
		var slice = p.kept.get(p.k), place = where(p, slice), context = p.canvas.getContext("2d"), by, w, h;

		p.slider.value = p.k;
		if (slice) {
			by = scale();
			w = slice.mm[0] * by;
			h = slice.mm[1] * by;
			paint(p, slice);
			context.fillRect(0, 0, p.canvas.width, p.canvas.height);
			context.imageSmoothingQuality = "high";
			context.drawImage(p.paper, (p.canvas.width - w) / 2 + pan[0] * by, (p.canvas.height - h) / 2 + pan[1] * by, w, h);
			["left", "right", "top", "bottom"].forEach(function (side) {
				p.e.querySelector("[data-side=" + side + "]").textContent = slice[side];
			});
			p.seen = p.k;
		} else if (p.failed.has(p.k)) { /* not the picture of another slice */
			context.fillRect(0, 0, p.canvas.width, p.canvas.height);
			p.seen = 0;
		}
		p.e.dataset.seen = p.seen; /* the slice in the picture */
		p.place.textContent = slice ? place : place + ", " + words[p.failed.has(p.k) ? "absent" : "making"];
		p.slider.setAttribute("aria-valuetext", place);
		p.canvas.setAttribute("aria-label", p.e.querySelector("figcaption").textContent + ", " + place);
	}

	function drawAll() {
		panes.forEach(draw);
	}

	function fit() {
		panes.forEach(function (p) {
			p.canvas.width = Math.max(1, Math.round(p.canvas.clientWidth * devicePixelRatio));
			p.canvas.height = Math.max(1, Math.round(p.canvas.clientHeight * devicePixelRatio));
		});
		drawAll();
	}

	function magnify(by) {
		zoom = Math.max(1, Math.min(16, zoom * by));
		if (zoom === 1)
			pan = [0, 0];
		drawAll();
	}

	function move(p, x, y) { /* pixels of the screen */
		if (!p.first)
			return;
		[x, y].forEach(function (d, a) {
			var most = p.first.mm[a] / 2;
			pan[a] = Math.max(-most, Math.min(most, pan[a] + d * devicePixelRatio / scale()));
		});
		drawAll();
	}

	/* ---- keys, wheel, mouse, buttons ---- */

	function key(p, e) {
		var turns = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -p.total, End: p.total };
		var moves = { ArrowUp: [0, 40], ArrowDown: [0, -40], ArrowLeft: [40, 0], ArrowRight: [-40, 0] };
		var other = { "+": magnify.bind(null, 1.25), "=": magnify.bind(null, 1.25), "-": magnify.bind(null, 0.8), i: invert, "0": reset };

		if (e.ctrlKey || e.altKey || e.metaKey || e.target.type === "number")
			return;
		if (other[e.key])
			other[e.key]();
		else if (e.target.type !== "range" && e.shiftKey && moves[e.key])
			move(p, moves[e.key][0], moves[e.key][1]);
		else if (e.target.type !== "range" && turns[e.key])
			turn(p, turns[e.key]);
		else
			return;
		e.preventDefault();
	}

	function wheel(p, e) {
		e.preventDefault();
		if (e.ctrlKey) {
			magnify(e.deltaY < 0 ? 1.25 : 0.8);
			return;
		}
		p.wheel += e.deltaMode === 1 ? 33 * e.deltaY : e.deltaY; /* a touch pad sends many small ones */
		if (Math.abs(p.wheel) >= 60) {
			turn(p, p.wheel < 0 ? -1 : 1);
			p.wheel = 0;
		}
	}

	/* A finger up or down: slices, or the picture where dragging moves it; two: zoom and move. */
	function touch(p, down) {
		p.fingers.set(down.pointerId, [down.clientX, down.clientY]);
		p.turned = 0;
	}

	function spread(p) { /* of two fingers: their middle and distance */
		var f = Array.from(p.fingers.values());
		return [(f[0][0] + f[1][0]) / 2, (f[0][1] + f[1][1]) / 2, Math.hypot(f[0][0] - f[1][0], f[0][1] - f[1][1])];
	}

	function slide(p, e) {
		var last = p.fingers.get(e.pointerId), before, now;

		if (!last)
			return;
		before = p.fingers.size === 2 && spread(p);
		p.fingers.set(e.pointerId, [e.clientX, e.clientY]);
		if (before) {
			now = spread(p);
			magnify(now[2] / Math.max(1, before[2]));
			move(p, now[0] - before[0], now[1] - before[1]);
		} else if (pans()) {
			move(p, e.clientX - last[0], e.clientY - last[1]);
		} else {
			p.turned += e.clientY - last[1];
			for (; Math.abs(p.turned) >= FINGER; p.turned -= Math.sign(p.turned) * FINGER)
				turn(p, Math.sign(p.turned));
		}
	}

	function pans() {
		return document.getElementById("look-pan").getAttribute("aria-pressed") === "true";
	}

	function drag(p, down) {
		var moves = down.shiftKey || down.button === 1 || pans();
		var range = p.range, x = down.clientX, y = down.clientY, last = [x, y];

		function go(e) {
			var width = (range && range[1] - range[0]) * Math.exp((e.clientX - x) / 200), middle;

			if (moves)
				move(p, e.clientX - last[0], e.clientY - last[1]);
			else if (range) { /* to the right: wider; upward: darker */
				middle = (range[0] + range[1]) / 2 + (y - e.clientY) / 300 * Math.abs(range[1] - range[0]);
				level(p, [middle - width / 2, middle + width / 2]);
			}
			last = [e.clientX, e.clientY];
		}
		function end() {
			p.canvas.removeEventListener("pointermove", go);
		}
		p.canvas.setPointerCapture(down.pointerId);
		if (down.pointerType === "touch") {
			touch(p, down);
			return;
		}
		p.canvas.addEventListener("pointermove", go);
		p.canvas.addEventListener("pointerup", end, { once: true });
		p.canvas.addEventListener("pointercancel", end, { once: true });
	}

	panes.forEach(function (p) {
		function typed() {
			var range = [p.black.valueAsNumber, p.white.valueAsNumber];
			if (isFinite(range[0]) && isFinite(range[1]))
				level(p, range);
		}
		p.canvas.addEventListener("pointermove", slide.bind(null, p));
		["pointerup", "pointercancel"].forEach(function (what) {
			p.canvas.addEventListener(what, function (e) { p.fingers.delete(e.pointerId); });
		});
		p.canvas.addEventListener("wheel", wheel.bind(null, p), { passive: false });
		p.canvas.addEventListener("pointerdown", drag.bind(null, p));
		p.canvas.addEventListener("dblclick", reset);
		p.slider.addEventListener("input", function () { turn(p, p.slider.value - p.k); });
		p.black.addEventListener("change", typed);
		p.white.addEventListener("change", typed);
	});
	document.addEventListener("keydown", function (e) { /* also where nothing was pressed yet: of the first result */
		if (e.target === document.body || section.contains(e.target))
			key(panes.find(function (p) { return p.e.contains(e.target); }) || panes[0], e);
	});
	[["in", magnify.bind(null, 1.25)], ["out", magnify.bind(null, 0.8)], ["invert", invert], ["reset", reset]].forEach(function (b) {
		document.getElementById("look-" + b[0]).addEventListener("click", function () { b[1](); });
	});
	document.getElementById("look-pan").addEventListener("click", function (e) {
		e.target.setAttribute("aria-pressed", String(e.target.getAttribute("aria-pressed") !== "true"));
	});
	if (panes.length > 1)
		document.getElementById("look-link-window").addEventListener("change", function () { level(panes[0], panes[0].range); });
	window.addEventListener("resize", fit);
	fit();
	panes.forEach(load);
}());
