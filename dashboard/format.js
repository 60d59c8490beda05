/* Times, durations, numbers and ids for people. */
import { h } from './dom.js';

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const hourMinute = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const dayText = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });
const yearText = new Intl.DateTimeFormat(undefined, { year: 'numeric', month: 'short', day: 'numeric' });
const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 });

/* Milliseconds since the epoch, of RFC 3339 or of microseconds; NaN: none. */
export function ms(time) {
  if (time === null || time === undefined || time === 0) return NaN;
  return typeof time === 'number' ? time / 1000 : Date.parse(time);
}

export function number(value) {
  return value === null || value === undefined ? '–' : whole.format(value);
}

export function shortNumber(value) {
  return value >= 10000 ? compact.format(value) : number(value);
}

export function bytes(count) {
  if (count < 1000) return `${count} B`;
  if (count < 1e6) return `${(count / 1000).toFixed(count < 1e4 ? 1 : 0)} kB`;
  return `${(count / 1e6).toFixed(1)} MB`;
}

/* Of milliseconds: "380 ms", "4.2 s", "3 min 20 s", "2 h 5 min", "4 d". */
export function duration(span) {
  if (!Number.isFinite(span)) return '–';
  if (span < 0) span = 0;
  if (span < 1) return span === 0 ? '0 ms' : '<1 ms';
  if (span < 1000) return `${Math.round(span)} ms`;
  const seconds = span / 1000;
  if (seconds < 60) return `${seconds < 10 && seconds % 1 ? seconds.toFixed(1) : Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min${seconds % 60 >= 1 ? ` ${Math.floor(seconds % 60)} s` : ''}`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h${minutes % 60 ? ` ${minutes % 60} min` : ''}`;
  return `${Math.floor(hours / 24)} d`;
}

function coarse(span) {
  const seconds = Math.floor(span / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

export function relative(at, now = Date.now()) {
  const span = now - at;
  if (Math.abs(span) < 1500) return 'now';
  if (span > 30 * 86400e3) return (new Date(at).getFullYear() === new Date(now).getFullYear() ? dayText : yearText).format(at);
  return span >= 0 ? `${coarse(span)} ago` : `in ${coarse(-span)}`;
}

export function exactTime(at) {
  return exact.format(at);
}

export function clockTime(at) {
  return clock.format(at);
}

/* "Nov 16", unless it is today. */
export function otherDay(at) {
  const day = dayText.format(at);
  return day === dayText.format(Date.now()) ? null : day;
}

export function minuteTime(at) {
  return hourMinute.format(at);
}

/* A time that tells how long ago it was, and keeps telling; the exact one on hover. */
export function when(time, fallback = '–') {
  const at = ms(time);
  if (Number.isNaN(at)) return h('span', { class: 'muted' }, fallback);
  return h('time', { datetime: new Date(at).toISOString(), title: exactTime(at), 'data-relative': at }, relative(at));
}

/* The same for those who want to know exactly; between the two, what else there is to say. */
export function whenExactly(time, ...more) {
  const at = ms(time);
  const day = new Date(at).getFullYear() === new Date().getFullYear() ? dayText : yearText;
  return [when(time), more, h('span', { class: 'exact' }, `${day.format(at)}, ${clockTime(at)}`)];
}

/* How long ago something began, for what is still going on. */
export function age(time, prefix = '') {
  const at = ms(time);
  if (Number.isNaN(at)) return h('span', { class: 'muted' }, '–');
  return h('time', { datetime: new Date(at).toISOString(), title: exactTime(at), 'data-age': at, 'data-prefix': prefix },
    prefix + duration(Date.now() - at));
}

export function refreshTimes(root = document) {
  const now = Date.now();
  for (const element of root.querySelectorAll('time[data-relative]')) {
    const text = relative(Number(element.dataset.relative), now);
    if (element.textContent !== text) element.textContent = text;
  }
  for (const element of root.querySelectorAll('time[data-age]')) {
    const text = element.dataset.prefix + duration(now - Number(element.dataset.age));
    if (element.textContent !== text) element.textContent = text;
  }
}

/* The end of an id tells runs of the same moment apart; its beginning is the time. */
export function shortId(id) {
  return id ? (id.length > 13 ? `${id.slice(0, 8)}…${id.slice(-4)}` : id) : '–';
}

export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

const units = { us: 1e-3, ms: 1, s: 1000, m: 60e3, h: 3600e3, d: 86400e3 };

/* Milliseconds of "1m30s"; NaN when it is none. */
export function parseDuration(text) {
  if (typeof text !== 'string') return NaN;
  let sum = 0;
  const rest = text.replace(/(\d+(?:\.\d+)?)(us|ms|s|m|h|d)/g, (_, count, unit) => {
    sum += Number(count) * units[unit];
    return '';
  });
  return rest.trim() === '' || rest.trim() === '0' ? sum : NaN;
}
