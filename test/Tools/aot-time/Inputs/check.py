"""Checks the files that aot-time writes for the kernel of loop.s: that they are
what they claim to be, and that figures which depend on each other agree."""

import json
import re
import sys
import xml.etree.ElementTree


def close(a, b):
    return abs(a - b) <= 1e-6 * max(1, abs(a), abs(b))


def launch_of(run):
    assert run["label"] == "loop" and run["target"] == "gfx942", run
    (launch,) = run["launches"]
    assert launch["kernel"] == "looped"
    assert launch["seconds"] > launch["launch_seconds"] > 0
    assert close(run["seconds"], launch["seconds"])
    assert close(launch["flops_per_second"],
                 launch["flops_credited"] / launch["seconds"])
    assert close(launch["flops_credited"], launch["flops_executed"])
    assert all(0 <= share <= 1.001 for share in launch["units"].values())
    assert close(sum(launch["stalls"].values()) + launch["issued_share"], 1)
    return launch


def report(path):
    data = json.load(open(path))
    assert data["version"] == 1
    (run,) = data["runs"]
    assert run["variables"] == {"groups": 304, "large": 0}
    launch = launch_of(run)
    assert launch["grid"] == [304, 1, 1] and launch["workgroups"] == 304
    instructions = launch["instructions"]
    offsets = [i["offset"] for i in instructions]
    assert offsets == sorted(offsets) and offsets[0] == 0
    assert close(sum(i["share"] for i in instructions), 1)
    by_text = {i["text"].split()[0]: i for i in instructions}
    assert by_text["s_endpgm"]["issues"] == 4
    assert by_text["v_exp_f32_e32"]["class"] == "trans"
    mfma = by_text["v_mfma_f32_32x32x8_bf16"]
    assert mfma["class"] == "mfma" and mfma["issues"] == 40
    assert by_text["ds_read_b32"]["conflict_clocks"] > 0
    assert "barrier" in by_text["s_barrier"]["stalls"]
    (loop,) = launch["loops"]
    assert loop["hot"] and loop["iterations_per_wave"] == 10
    assert (loop["first_offset"], loop["last_offset"]) == (0x2C, 0x54)


def table(path):
    runs = json.load(open(path))["runs"]
    assert [run["point"] for run in runs] == ["groups=1", "groups=304"]
    for run in runs:
        assert "instructions" not in launch_of(run)


def perfetto(path):
    trace = json.load(open(path))
    events = trace["traceEvents"]
    names = {e["args"].get("name") for e in events if e["ph"] == "M"}
    assert {"SIMD 0", "SIMD 3", "matrix core", "LDS", "wave 0"} <= names, names
    spans = [e for e in events if e["ph"] == "X"]
    assert any(e["cat"] == "stall" for e in spans)
    assert any(e["name"].startswith("v_mfma") for e in spans)
    assert all(e["dur"] > 0 for e in spans)
    # What one track shows does not overlap.
    last = {}
    for e in sorted(spans, key=lambda e: e["ts"]):
        track = e["pid"], e["tid"]
        assert e["ts"] >= last.get(track, -1e9) - 1e-6, e
        last[track] = e["ts"] + e["dur"]


def page(path):
    text = open(path).read()
    assert text.startswith("<!DOCTYPE html>")
    assert not re.search(r'(src|href)="(?!#)', text), "it needs other files"
    data = re.search(r'<script id="data" type="application/json">(.*?)</script>',
                     text, re.S)
    return json.loads(data.group(1))


def html(path):
    data = page(path)
    assert data["title"] == "looped on gfx942"
    assert len(data["simds"]) == 4
    columns = data["events"]
    assert len({len(column) for column in columns.values()}) == 1
    assert columns["clock"] == sorted(columns["clock"])
    assert data["end"] > data["begin"] and 0 <= data["head"] < len(data["inst"])
    for simd in data["simds"]:
        for unit in simd["units"]:
            assert 0 <= unit["busy"] <= 1
            end = 0
            for clock, clocks, event in unit["spans"]:
                assert clock >= end and event < len(columns["clock"])
                end = clock + clocks


def window(path, begin, end):
    data = page(path)
    assert (data["begin"], data["end"]) == (int(begin), int(end))


def comparison(path, figures, table):
    """That a page shows what the JSON and the text of the same kernels say."""
    text = open(path).read()
    assert text.count("</script") == 2 and "<!--" not in text, "names are not escaped"
    data = page(path)
    runs = json.load(open(figures))["runs"]
    rows = data["rows"]
    assert len(rows) == len(runs)
    lines = [" ".join(line.split()) for line in open(table)]
    for row, run in zip(rows, runs):
        assert data["subjects"][row["subject"]]["label"] == run["label"]
        assert row["point"] == run["point"] and row.get("error") == run.get("error")
        if "error" in run:
            continue
        (launch,) = run["launches"]
        assert row["chip"] == run["target"]
        assert close(row["time_error"], launch["time_error"])
        assert close(row["flops_per_second"], launch["flops_per_second"])
        assert close(row["flops_per_byte"] * launch["memory"]["memory_bytes"],
                     launch["flops_credited"])
        cells = row["cells"]
        told = " ".join(cells[name].strip() for name in
                        ("time", "rate", "peak", "matrix", "clock", "ratio"))
        assert any(told in line for line in lines), (told, lines)
        assert row.get("tie", False) == cells["ratio"].endswith("~")
    for chip in data["chips"]:
        (launch,) = runs[chip["rows"][0]]["launches"]
        assert chip["bytes_per_second"] == launch["memory"]["peak_bytes_per_second"]
        (peak,) = chip["peaks"]
        assert close(peak["flops_per_second"], launch["peak_flops_per_second"])
        assert peak["least_clock_hz"] <= launch["clock_hz"] <= peak["most_clock_hz"]
    # Each row is in one chart.
    drawn = [i for chart in data["charts"] for c in chart["curves"] for i in c["rows"]]
    assert sorted(drawn) == list(range(len(rows))), drawn


def charts(path):
    """What is in each chart, a line each."""
    data = page(path)
    for chart in data["charts"]:
        print(chart["chip"] or "-", chart["sizes"] or "-", data["axis"] or "-", end=":")
        for curve in chart["curves"]:
            at = ",".join(f'{data["rows"][i]["x"]:g}' for i in curve["rows"])
            print("", data["subjects"][curve["subject"]]["label"], "at", at, end="")
        work = chart["work"] and f'{chart["work"]["flops"]:.0f}'
        print(";", work, chart["computed"])


def svg(path):
    root = xml.etree.ElementTree.parse(path).getroot()
    assert root.tag.endswith("svg")
    texts = {e.text for e in root.iter() if e.tag.endswith("text")}
    assert {"SIMD 0", "matrix core", "wave 0", "barrier"} <= texts, texts


globals()[sys.argv[1]](*sys.argv[2:])
