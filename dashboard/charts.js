/* Small charts as SVG. */
import { h, svg, fill } from './dom.js';
import { ms, number, shortNumber, minuteTime } from './format.js';

const WIDTH = 720, HEIGHT = 132, BASE = 112, TOP = 10;

function niceTop(value) {
  if (value <= 4) return 4;
  const power = 10 ** Math.floor(Math.log10(value));
  for (const step of [1, 2, 2.5, 5, 10]) if (step * power >= value) return step * power;
  return value;
}

const finishedOf = (minute) => minute.succeeded + minute.failed + minute.cancelled;

/* Finished runs as stacked bars per minute, and those that were created as a line. */
export function throughputChart(throughput) {
  const minutes = throughput.minutes;
  const since = ms(throughput.since);
  const top = niceTop(Math.max(...minutes.map((minute) => Math.max(minute.created, finishedOf(minute)))));
  const step = WIDTH / minutes.length;
  const y = (value) => BASE - (value / top) * (BASE - TOP);
  const sums = { created: 0, succeeded: 0, failed: 0, cancelled: 0 };
  for (const minute of minutes) for (const name in sums) sums[name] += minute[name];
  const note = h('div', { class: 'chart-note', 'aria-hidden': 'true' });
  const bars = svg('g', null);
  const points = [];
  minutes.forEach((minute, i) => {
    const x = i * step;
    let at = BASE;
    const group = svg('g', { class: ms(minute.at) + 60000 < since ? 'uncounted' : null });
    for (const name of ['succeeded', 'cancelled', 'failed']) {
      if (minute[name] === 0) continue;
      const size = Math.max(1.5, (minute[name] / top) * (BASE - TOP));
      at -= size;
      group.append(svg('rect', { class: `bar-${name}`, x: x + 1.5, y: at, width: step - 3, height: size, rx: 1 }));
    }
    const area = svg('rect', { class: 'bar-area', x, y: 0, width: step, height: BASE });
    area.addEventListener('pointerenter', () => fill(note, h('strong', null, minuteTime(ms(minute.at))),
      `${number(minute.created)} created · ${number(minute.succeeded)} succeeded · ${number(minute.failed)} failed${minute.cancelled ? ` · ${number(minute.cancelled)} cancelled` : ''}`));
    group.append(area);
    bars.append(group);
    points.push(`${(x + step / 2).toFixed(1)},${y(minute.created).toFixed(1)}`);
  });
  bars.addEventListener('pointerleave', () => fill(note));
  const grid = [0, 0.5, 1].map((share) => svg('line', { class: 'grid', x1: 0, x2: WIDTH, y1: y(top * share), y2: y(top * share) }));
  const label = `Last hour: ${number(sums.created)} created, ${number(sums.succeeded)} succeeded, ${number(sums.failed)} failed, ${number(sums.cancelled)} cancelled`;
  const ticks = [0, 15, 30, 45, 59].filter((i) => minutes[i]).map((i) => h('span', null, i === 59 ? 'now' : minuteTime(ms(minutes[i].at))));
  return h('div', { class: 'chart' },
    h('div', { class: 'legend' },
      [['created', 'Created'], ['succeeded', 'Succeeded'], ['failed', 'Failed'], ['cancelled', 'Cancelled']].filter(([name]) => name !== 'cancelled' || sums.cancelled).map(([name, text]) =>
        h('span', { class: 'legend-item' }, h('span', { class: `swatch swatch-${name}`, 'aria-hidden': 'true' }), text, h('strong', null, number(sums[name])))),
      note),
    h('div', { class: 'chart-body' },
      svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT - 18}`, role: 'img', 'aria-label': label, preserveAspectRatio: 'none' }, grid, bars,
        svg('polyline', { class: 'line-created', points: points.join(' ') })),
      h('div', { class: 'chart-scale', 'aria-hidden': 'true' }, h('span', null, shortNumber(top)), h('span', null, shortNumber(top / 2)), h('span', null, '0'))),
    h('div', { class: 'chart-ticks', 'aria-hidden': 'true' }, ticks));
}
