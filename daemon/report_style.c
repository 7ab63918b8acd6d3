// report_style: what a page looks like, light and dark, on a screen and on paper. Nothing comes
// from elsewhere, and without its script the page lacks only the line that follows the pointer.
#include "daemon/report_impl.h"

static const char colours[] =
    ":root{color-scheme:light dark;--bg:#f6f7f9;--card:#fff;--ink:#1b2430;--dim:#5d6a7a;"
    "--line:#dfe4ea;--grid:#e9edf1;--a:#8a94a3;--b:#1769d2;--c:#e07b00;--bad:#c8202f;"
    "--warn:#b76e00;--good:#12803c;--badbg:#fdecee;--warnbg:#fff4e0;--goodbg:#e6f6ec;"
    "--m1:#c3cad3;--m2:#aab4c0;--m3:#7fa8d9;--m4:#38a3a5;--m5:#3aa657;--m6:#efb72d;"
    "--m7:#ee8434;--m8:#d64550;--m9:#8e1b2c;--m10:#8b93b8;--m11:#9a6fc4}"
    "@media(prefers-color-scheme:dark){:root{--bg:#12161c;--card:#1a2029;--ink:#e4e9f0;"
    "--dim:#97a3b3;--line:#2c3541;--grid:#262e39;--a:#7d8998;--b:#62a4ff;--c:#ffa640;"
    "--bad:#ff6b78;--warn:#ffc04d;--good:#5fd38a;--badbg:#3a1b20;--warnbg:#37290f;"
    "--goodbg:#12301e;--m1:#4a5360;--m2:#5d6875;--m3:#4a7fbf;--m4:#2f8f91;--m5:#2f8f4a;"
    "--m6:#d39f1e;--m7:#d9701f;--m8:#d64550;--m9:#a32338;--m10:#6d76a3;--m11:#8257b3}}";

static const char page[] =
    "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
    "main{overflow-wrap:anywhere;max-width:1120px;margin:0 auto;padding:28px 20px 60px}"
    "h1{font-size:26px;line-height:1.25;margin:0 0 4px;overflow-wrap:anywhere}"
    "h2{font-size:18px;margin:34px 0 10px}h3{font-size:15px;margin:0 0 2px;"
    "overflow-wrap:anywhere}p{margin:4px 0}.dim,.sub{color:var(--dim)}"
    ".small{font-size:13px}"
    ".card{background:var(--card);border:1px solid var(--line);border-radius:10px;"
    "padding:14px 16px;margin:10px 0;overflow-wrap:anywhere}"
    ".grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(310px,1fr));"
    "gap:12px}"
    ".grid>.card{margin:0;min-width:0}"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(220px,1fr));"
    "gap:10px;"
    "margin:16px 0}.tile{background:var(--card);border:1px solid var(--line);"
    "border-radius:10px;padding:10px 14px}.tile b{display:block;font-size:21px;"
    "font-weight:600;font-variant-numeric:tabular-nums;white-space:nowrap}"
    ".tile span{color:var(--dim);font-size:13px;display:block;line-height:1.35}"
    ".bad{color:var(--bad)}.warn{color:var(--warn)}.good{color:var(--good)}"
    ".verdict{border-left:6px solid var(--line)}.verdict.good{border-color:var(--good);"
    "background:var(--goodbg)}.verdict.bad{border-color:var(--bad);"
    "background:var(--badbg)}"
    ".verdict b{font-size:17px}.verdict p{color:var(--ink)}"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:14px}"
    "th{text-align:left;font-weight:600;color:var(--dim);font-size:13px}"
    "td,th{overflow-wrap:break-word;padding:4px 10px 4px 0;"
    "border-bottom:1px solid var(--grid);vertical-align:top}"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
    "tr:last-child td{border-bottom:0}.tight td,.tight th{width:1%;white-space:nowrap}"
    ".tight td:last-child,.tight th:last-child{width:auto;white-space:normal}"
    "td.n+td,th.n+th{padding-left:8px}td.t{white-space:nowrap;"
    "font-variant-numeric:tabular-nums;color:var(--dim)}"
    "tr.e td:last-child{color:var(--bad);font-weight:600}"
    "tr.w td:last-child{color:var(--warn)}"
    "tr.mark td:last-child{font-weight:600}dl{display:grid;"
    "grid-template-columns:max-content 1fr;gap:3px 18px;margin:0;font-size:14px}"
    "dt{color:var(--dim)}dd{margin:0;overflow-wrap:anywhere;min-width:0}"
    "summary{cursor:pointer;color:var(--dim);font-size:14px}"
    "pre{overflow-x:auto;font-size:12.5px;line-height:1.45;max-height:420px;"
    "margin:8px 0 0}"
    "footer{color:var(--dim);font-size:13px;margin-top:40px}";

static const char plots[] =
    ".plot{position:relative;margin:8px 0 2px 46px}.plot svg,.bars svg{display:block;"
    "width:100%;background:var(--card);border:1px solid var(--line)}"
    ".plot path,.bars path{fill:none;vector-effect:non-scaling-stroke;stroke-width:1.4}"
    ".plot path.grid,.bars path.grid{stroke:var(--grid);stroke-width:1}"
    ".yl{position:absolute;right:100%;width:46px;top:0}.yl span{position:absolute;"
    "right:6px;"
    "transform:translateY(-50%);font-size:11px;color:var(--dim);"
    "font-variant-numeric:tabular-nums}.xl{position:relative;height:17px;overflow:hidden}"
    ".xl span{position:absolute;transform:translateX(-50%);font-size:11px;"
    "color:var(--dim);"
    "white-space:nowrap;top:1px}.xl .l{transform:none}"
    ".xl .r{transform:translateX(-100%)}.unit{position:absolute;right:100%;width:46px;"
    "padding-right:6px;"
    "bottom:-6px;font-size:11px;color:var(--dim);text-align:right}"
    "path.a{stroke:var(--a)}path.b{stroke:var(--b)}path.c{stroke:var(--c)}"
    "path.worst{stroke:var(--b)}path.limit{stroke:var(--bad);stroke-dasharray:5 4;"
    "opacity:.75}path.budget{stroke:var(--bad);stroke-dasharray:4 3}"
    "path.chunk{stroke:var(--dim);opacity:.8;stroke-width:1}path.acted{stroke:var(--bad);"
    "stroke-width:1.5}path.seat{stroke:var(--m11);stroke-width:2.5}"
    ".bars{margin:8px 0 0}.bars svg{height:90px}rect.bar{fill:var(--b)}"
    "rect.bar.over{fill:var(--bad)}.m1{fill:var(--m1)}.m2{fill:var(--m2)}"
    ".m3{fill:var(--m3)}"
    ".m4{fill:var(--m4)}.m5{fill:var(--m5)}.m6{fill:var(--m6)}.m7{fill:var(--m7)}"
    ".m8{fill:var(--m8)}.m9{fill:var(--m9)}.m10{fill:var(--m10)}.m11{fill:var(--m11)}"
    ".key{display:flex;flex-wrap:wrap;gap:4px 18px;font-size:13px;color:var(--dim);"
    "margin:6px 0}.key svg{width:14px;height:14px;vertical-align:-2px;margin-right:6px;"
    "border-radius:3px}.key i{display:inline-block;width:18px;height:0;"
    "border-top:3px solid;"
    "vertical-align:4px;margin-right:6px}.key i.a{color:var(--a)}.key i.b{color:var(--b)}"
    ".key i.c{color:var(--c)}.key i.limit{color:var(--bad);border-top-style:dashed;"
    "border-top-width:2px}.key i.chunk{color:var(--dim);border-top:0;"
    "border-left:2px solid;"
    "width:0;height:11px;vertical-align:-1px;margin-left:8px}"
    ".key i.acted{color:var(--bad);"
    "border-top:0;border-left:3px solid;width:0;height:11px;vertical-align:-1px;"
    "margin-left:8px}.shots{display:grid;gap:10px;"
    "grid-template-columns:repeat(auto-fit,minmax(150px,1fr))}.shots figure{margin:0;"
    "max-width:260px}.shots img{display:block;width:100%;height:auto;"
    "border-radius:6px;"
    "background:var(--grid)}.shots figcaption{font-size:12px;color:var(--dim)}"
    ".at{position:absolute;top:0;width:1px;background:var(--ink);opacity:.45;"
    "pointer-events:none;display:none}.tip{position:fixed;bottom:10px;left:10px;"
    "background:var(--ink);color:var(--bg);font-size:12px;padding:2px 8px;"
    "border-radius:4px;"
    "display:none;font-variant-numeric:tabular-nums}"
    "@media(max-width:640px){main{padding:16px 12px 40px}h1{font-size:21px}"
    ".xl .odd{display:none}.grid{grid-template-columns:1fr}.card{padding:12px}"
    "dl{grid-template-columns:1fr}dt{margin-top:6px}"
    ".shots{grid-template-columns:1fr 1fr}"
    ".tiles{grid-template-columns:repeat(2,minmax(0,1fr))}.tile b{font-size:18px}}"
    "@media print{body{background:#fff;font-size:11px}main{max-width:none;padding:0}"
    ".card,.tile,.plot,figure,tr{break-inside:avoid}h2{break-after:avoid}"
    "rect,.m1,.plot svg{print-color-adjust:exact;-webkit-print-color-adjust:exact}"
    ".tip,.at{display:none!important}}";

// A line in all plots over time where the pointer is in one of them. x0 and x1 are in data-x.
static const char script[] =
    "(function(){var p=document.querySelectorAll('.plot'),m=document.querySelector('mai"
    "n'),"
    "s=+m.dataset.seconds,t=document.createElement('div'),l=[];t.className='tip';"
    "document.body.appendChild(t);"
    "p.forEach(function(e){var d=document.createElement('div'),"
    "g=e.querySelector('svg');d.className='at';d.style.height=g.style.height;"
    "e.appendChild(d);l.push(d);"
    "e.addEventListener('mousemove',function(v){var r=g.getBoundingClientRect(),"
    "x=(v.clientX-r.left)/r.width;if(x<0||x>1)return;l.forEach(function(d){"
    "d.style.display='block';d.style.left=x*100+'%'});t.style.display='block';"
    "t.textContent=(x*s).toFixed(s<100?3:2)+' s'});"
    "e.addEventListener('mouseleave',function(){l.forEach(function(d){d.style.display='"
    "none'});"
    "t.style.display='none'})})})();";

void report_head(FILE *f, const char *title, double seconds)
{
    fputs(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/><title>",
        f);
    svg_text(f, title);
    fprintf(f,
            "</title><style>%s%s%s</style></head>\n<body><main data-seconds=\"%.9g\">\n",
            colours, page, plots, seconds);
}

void report_foot(FILE *f)
{
    fprintf(f, "</main>\n<script>%s</script>\n</body></html>\n", script);
}

struct svg_plot report_plot(const struct report *r, const char *label, const char *unit,
                            int height)
{
    return (struct svg_plot){.x0 = 0,
                             .x1 = r->seconds,
                             .y1 = 1,
                             .height = height,
                             .label = label,
                             .unit = unit};
}
