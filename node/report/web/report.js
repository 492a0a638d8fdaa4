/* SPDX-License-Identifier: Apache-2.0 */
/* Show one slice with a slider instead of all of them. */
(function () {
	"use strict";
	var box = document.getElementById("slices");
	if (!box)
		return;
	var figures = box.querySelectorAll("figure"), bar = document.createElement("p"), range = document.createElement("input");
	function show() {
		for (var i = 0; i < figures.length; i++)
			figures[i].classList.toggle("shown", i === +range.value);
		range.setAttribute("aria-valuetext", figures[+range.value].textContent);
	}
	range.type = "range";
	range.min = 0;
	range.max = figures.length - 1;
	range.value = box.dataset.first;
	range.setAttribute("aria-label", "Slice");
	range.addEventListener("input", show);
	bar.className = "slider";
	bar.appendChild(range);
	box.parentNode.insertBefore(bar, box);
	box.classList.add("single");
	show();
})();
