// Put the parts together.
startTable();
startMatrices();
startPlane();
startCharts();
addEventListener("keydown", (event) => { if (event.key === "Escape") { hideTip(); light([]); } });
