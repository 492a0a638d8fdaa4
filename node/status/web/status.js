/* SPDX-License-Identifier: Apache-2.0 */
/* The page without reloading: every few seconds it is fetched, and the sections that changed are exchanged. Focus, opened details
 * and the scroll position stay. Nothing is built here: what is shown is the server's own page. */
"use strict";
(function () {
	var EVERY = 3000, timer = null, paused = false, failures = 0, asked = 0;
	var button = document.getElementById("pause");

	function later() {
		clearTimeout(timer);
		if (!paused)
			timer = setTimeout(update, EVERY * Math.min(1 + failures, 10));
	}

	/* A text in the language of the page (node/status/status_page.c), with its {names} replaced. */
	function said(name, values) {
		return document.body.dataset[name].replace(/\{(\w+)\}/g, function (all, key) { return values[key]; });
	}

	function keys(root, what) {
		return Array.prototype.map.call(root.querySelectorAll(what), function (e) { return e.id; });
	}

	/* One section, with what a person has opened or stands on. */
	function exchange(old, now) {
		var open = keys(old, "details[open][id]"), active = document.activeElement;
		var focus = active && old.contains(active) ? active.id : "";

		old.querySelectorAll("select[id]").forEach(function (s) { /* what was chosen */
			var e = now.querySelector("#" + s.id);
			if (e)
				e.value = s.value;
		});
		old.replaceWith(now);
		open.forEach(function (id) {
			var e = document.getElementById(id);
			if (e)
				e.open = true;
		});
		if (focus && document.getElementById(focus))
			document.getElementById(focus).focus({ preventScroll: true });
		if (now.id === "slices") {
			middle();
			look();
		}
	}

	/* ---- the slices of a case: a row of squares, of which one is seen ---- */

	function shown() { /* the number of the one that is seen, from 1; 0: there are none */
		var strip = document.getElementById("strip");
		return strip && strip.clientWidth ? Math.round(strip.scrollLeft / strip.clientWidth) + 1 : 0;
	}

	function label() { /* which of all slices it is (look_slice_at()), and how far from the first */
		var slider = document.getElementById("slice"), total = +slider.dataset.total, step = +slider.dataset.step;
		var at = Math.floor((2 * slider.value - 1) * total / (2 * slider.max));
		var text = said(step > 0 ? "height" : "slice", { n: at + 1, total: total, mm: (at * step).toFixed(1) });

		document.getElementById("strip").style.setProperty("--at", slider.max > 1 ? 100 * (slider.value - 1) / (slider.max - 1) + "%" : "0");
		slider.setAttribute("aria-valuetext", text);
		document.getElementById("slice-of").textContent = slider.disabled ? said("making") : text;
	}

	function turn(slice) {
		var strip = document.getElementById("strip"), slider = document.getElementById("slice");

		if (!strip || !slice)
			return;
		slider.value = slice;
		strip.scrollLeft = slider.disabled ? 0 : (slider.value - 1) * strip.clientWidth;
		label();
	}

	function middle() { /* where a page begins */
		var slider = document.getElementById("slice");
		if (slider)
			turn(slider.value);
	}

	/* Until the slices are made, their address gives the thumbnail: ask again. */
	function look() {
		var img = document.querySelector("#strip img"), slider = document.getElementById("slice"), now = slider && slider.value;

		if (!img || !img.complete)
			return;
		slider.disabled = img.naturalWidth !== slider.max * img.naturalHeight;
		slider.value = now;
		turn(now);
		if (!img.naturalWidth)
			document.getElementById("slice-of").textContent = said("absent");
		else if (slider.disabled && asked < 200)
			setTimeout(function () { img.src = img.src.split("?")[0] + "?again=" + (asked += 1); }, 700);
	}

	["load", "error"].forEach(function (what) {
		document.addEventListener(what, function (e) {
			if (e.target.parentNode && e.target.parentNode.id === "strip")
				look();
		}, true);
	});

	document.addEventListener("input", function (e) {
		if (e.target.id === "slice")
			turn(e.target.value);
	});
	document.addEventListener("scroll", function (e) {
		if (e.target.id !== "strip" || document.getElementById("slice").disabled || matchMedia("print").matches)
			return;
		document.getElementById("slice").value = shown();
		label();
	}, true);
	["resize", "afterprint"].forEach(function (what) { window.addEventListener(what, middle); });

	/* ---- copy ---- */

	document.addEventListener("click", function (e) {
		var from = e.target.closest("[data-copy]"), text = from && document.getElementById(from.dataset.copy), range;

		if (!text)
			return;
		range = document.createRange();
		range.selectNodeContents(text);
		getSelection().removeAllRanges();
		getSelection().addRange(range); /* so that it is seen what was copied, and can be copied by hand */
		if (navigator.clipboard)
			navigator.clipboard.writeText(text.textContent).catch(function () { document.execCommand("copy"); });
		else /* a page that did not come over TLS */
			document.execCommand("copy");
	});

	function plain(e) { /* as it came, without what was opened here */
		var copy = e.cloneNode(true);
		copy.querySelectorAll("details[open]").forEach(function (d) { d.open = false; });
		copy.querySelectorAll("output").forEach(function (o) { o.textContent = ""; });
		return copy.outerHTML;
	}

	/* The token in the forms is of the server's process: it changes when that does, and with it every form. */
	function take(page) {
		var now = page.getElementById("main");

		if (!now)
			throw new Error("another page");
		if (keys(now, "section[id]").join() !== keys(document, "main section[id]").join()) {
			document.getElementById("main").replaceWith(document.importNode(now, true));
			middle();
			look();
		} else {
			now.querySelectorAll("section[id]").forEach(function (section) {
				var old = document.getElementById(section.id);
				if (old.dataset.of && old.dataset.of === section.dataset.of)
					return; /* slices: what the picture shows is the same */
				if (plain(old) !== plain(section))
					exchange(old, document.importNode(section, true));
			});
		}
		document.title = page.title;
		document.getElementById("clock").replaceWith(document.importNode(page.getElementById("clock"), true));
	}

	function update() {
		fetch(location.pathname + location.search, { credentials: "same-origin", cache: "no-store" }).then(function (answer) {
			if (!answer.ok)
				throw new Error("status " + answer.status);
			return answer.text();
		}).then(function (text) {
			if (!paused)
				take(new DOMParser().parseFromString(text, "text/html"));
			failures = 0;
			document.documentElement.classList.remove("lost");
		}).catch(function () {
			failures += 1;
			document.documentElement.classList.add("lost");
			document.getElementById("clock").textContent = said("lost");
		}).then(later);
	}

	document.documentElement.classList.add("scripted");
	window.addEventListener("load", function () { middle(); look(); });
	button.hidden = false;
	button.addEventListener("click", function () {
		paused = !paused;
		button.textContent = said(paused ? "resume" : "pause");
		if (paused)
			clearTimeout(timer);
		else
			update();
	});
	document.addEventListener("visibilitychange", function () {
		if (!document.hidden && !paused)
			update();
	});
	later();
}());
