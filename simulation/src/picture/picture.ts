import type { TimelineEntry } from '../kernel/world.ts';
import type { Drawing, DrawnMessage, DrawnSpan } from './drawing.ts';

const ROW = 20;
const LANE = 110;
const LEFT = 90;
const TOP = 50;
const BAR = { hold: 10, pause: 22 } as const;

/** One run as a page: a lane for each process and store, time downwards, one row for each line of the timeline. */
export function pictureOf(title: string, timeline: readonly TimelineEntry[], drawing: Drawing): string {
  const lanes = lanesOf(timeline, drawing);
  const x = (who: string): number => LEFT + LANE * (lanes.indexOf(who) + 0.5);
  const y = (at: number): number => TOP + ROW * (rowOf(timeline, at) + 0.5);
  const textAt = LEFT + LANE * lanes.length + 10;
  const height = TOP + ROW * (timeline.length + 1);
  const parts = [
    ...lanes.map((who) => laneOf(who, x(who), height)),
    ...drawing.spans.map((span) => spanOf(span, x(span.who), y, height)),
    ...drawing.messages.map((message) => arrowOf(message, x, y)),
    ...timeline.map((entry, row) => rowText(entry, TOP + ROW * (row + 0.5), x(entry.who), textAt)),
  ];
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
<h1>${escaped(title)}</h1>
<p>Time runs downwards, one row for each event, true time in milliseconds at the left. A green bar: a process holds; a grey one: it
stands still. An arrow: a request or a reply.</p>
<svg width="${textAt + 900}" height="${height}" role="img">
<defs><marker id="tip" orient="auto" markerWidth="7" markerHeight="7" refX="6" refY="3"><path d="M0,0 L6,3 L0,6 z"/></marker></defs>
${parts.join('\n')}
</svg>
</html>
`;
}

const STYLE = `
body { font: 13px system-ui, sans-serif; margin: 16px; }
h1 { font-size: 16px; }
text { font: 12px ui-monospace, monospace; dominant-baseline: middle; }
.name { font-weight: bold; text-anchor: middle; }
.lane { stroke: #bbb; }
.time { text-anchor: end; fill: #666; }
.hold { fill: #4a4; opacity: 0.75; }
.pause { fill: #999; opacity: 0.3; }
.message { stroke: #36c; opacity: 0.55; marker-end: url(#tip); }
.fault { fill: #b60; }
.check { fill: #c00; font-weight: bold; }
`;

/** Processes first, then stores, then what a lock protects; the checks have no lane. */
function lanesOf(timeline: readonly TimelineEntry[], { messages }: Drawing): string[] {
  const names = new Set([
    ...messages.flatMap(({ from, to }) => [from, to]),
    ...timeline.map(({ who }) => who),
  ]);
  names.delete('CHECK');
  const isProcess = (who: string): boolean => /^p\d+$/.test(who);
  return [...names].sort((a, b) => Number(isProcess(b)) - Number(isProcess(a)) || (a < b ? -1 : 1));
}

/** The row of the first event that is not earlier: the times rise from row to row. */
function rowOf(timeline: readonly TimelineEntry[], at: number): number {
  let low = 0;
  let high = timeline.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((timeline[middle] as TimelineEntry).at < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

function laneOf(who: string, x: number, height: number): string {
  return `<text class="name" x="${x}" y="${TOP - 20}">${escaped(who)}</text><line class="lane" x1="${x}" y1="${TOP}" x2="${x}" y2="${height}"/>`;
}

function spanOf(span: DrawnSpan, x: number, y: (at: number) => number, height: number): string {
  const { kind, what, from, to } = span;
  const width = BAR[kind];
  const begin = y(from);
  const end = to === undefined ? height : y(to);
  return `<rect class="${kind}" x="${x - width / 2}" y="${begin}" width="${width}" height="${Math.max(4, end - begin)}"><title>${escaped(what)}</title></rect>`;
}

function arrowOf(
  { from, to, sentAt, at }: DrawnMessage,
  x: (who: string) => number,
  y: (at: number) => number,
): string {
  return `<line class="message" x1="${x(from)}" y1="${y(sentAt)}" x2="${x(to)}" y2="${y(at)}"/>`;
}

function rowText({ at, who, what }: TimelineEntry, y: number, x: number, textAt: number): string {
  const kind = who === 'CHECK' ? 'check' : what.startsWith('FAULT') ? 'fault' : 'event';
  const dot = who === 'CHECK' ? '' : `<circle class="${kind}" cx="${x}" cy="${y}" r="3"/>`;
  const [line = ''] = what.split('\n');
  return `<text class="time" x="${LEFT - 20}" y="${y}">${at.toFixed(3)}</text>${dot}<text class="${kind}" x="${textAt}" y="${y}">${escaped(`${who}: ${line}`)}</text>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
