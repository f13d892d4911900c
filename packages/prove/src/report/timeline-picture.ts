import type { Timeline, TimelineHold, TimelineStrike } from '../proof.ts';
import { text } from './html-text.ts';

const LANE = 46;
const TOP = 22;
/** Pixels of a second. */
const SCALE = 24;
const LEFT = 70;
const LEAST_WIDTH = 1.5;
const LETTER = 6.5;

/** The timeline as a picture that is scrolled sideways: a line for each worker, and above its holds what was done to it. */
export function timelinePicture({ lanes, holds, strikes }: Timeline): string {
  const endMs = Math.max(1_000, ...holds.map(({ until }) => until), ...strikes.map(({ until }) => until));
  const [width, height] = [LEFT + (endMs / 1_000) * SCALE + 20, TOP + lanes * LANE];
  const seconds = Array.from({ length: Math.floor(endMs / 5_000) + 1 }, (_, index) => index * 5);
  return `<p class="key"><span style="background:var(--held)"></span>held, in the queue of all workers<span style="background:var(--long)"></span>held for
longer than a ttl, and renewed<span style="background:var(--fault)"></span>a fault<span style="border:2px solid var(--bad)"></span>ended by a loss or a crash</p>
<div class="scroll" tabindex="0" role="region" aria-label="Timeline">
<svg width="${Math.ceil(width)}" height="${height}" role="img" aria-label="A line for each worker: its holds, and what was done to it">
${seconds.map((second) => `<text x="${at(second * 1_000)}" y="12">${second} s</text>`).join('')}
${Array.from({ length: lanes }, (_, lane) => laneOf(lane, width)).join('\n')}
${strikes.map(strikeShape).join('\n')}
${holds.map(holdShape).join('\n')}
</svg>
</div>`;
}

function laneOf(lane: number, width: number): string {
  const y = TOP + lane * LANE;
  return `<text x="0" y="${y + 26}">worker ${lane + 1}</text><line class="lane" x1="0" x2="${Math.ceil(width)}" y1="${y}" y2="${y}"/>`;
}

function strikeShape({ lane, fault, from, until, detail }: TimelineStrike): string {
  const y = TOP + lane * LANE;
  // A name that is wider than its fault would cover the next one.
  const label = fault.length * LETTER < widthOf(from, until) ? fault : '';
  const title = `<title>${text(`${fault}: ${detail}`)}</title>`;
  return `<g><rect class="fault" x="${at(from)}" y="${y + 1}" width="${widthOf(from, until)}" height="${LANE - 2}">${title}</rect><text x="${at(from) + 2}" y="${y + 13}">${label}</text></g>`;
}

function holdShape({ lane, lock, from, until, end }: TimelineHold): string {
  const y = TOP + lane * LANE + (lock === 'renewed' ? 17 : 31);
  const ended = end === 'lost' || end === 'crashed' ? ` ${end}` : '';
  return `<rect class="${lock}${ended}" x="${at(from)}" y="${y}" width="${widthOf(from, until)}" height="11"><title>${text(`${lock}, ${until - from} ms, ${end}`)}</title></rect>`;
}

function at(ms: number): number {
  return Math.round((LEFT + (ms / 1_000) * SCALE) * 10) / 10;
}

function widthOf(from: number, until: number): number {
  return Math.round(Math.max(LEAST_WIDTH, ((until - from) / 1_000) * SCALE) * 10) / 10;
}
