// The page of `locks board`: reads the state again and again, and changes only what has changed, so that focus and reading position stay.
const element = (id) => document.getElementById(id);
const token = location.hash.slice(1);
const headers = token === '' ? {} : { authorization: `Bearer ${token}` };
const ENDINGS = {
  'ran-out': 'lost: its ttl ran out without a renewal',
  'released-here': 'ended by force from here',
  ended: 'released, or ended by force elsewhere',
};

let isPaused = false;
/** The hold that the open dialog asks about. */
let asked;
/** How many holds had ended, to tell of the new ones. */
let toldOf;
/** Who waits for whom, as it is shown. */
let drawn = [];

/** A name or label, with characters that would change what the page shows written out. */
function printable(text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (char) => `\\u{${char.codePointAt(0).toString(16)}}`);
}

function who({ label, acquisitionId }) {
  return label === undefined ? acquisitionId : `${printable(label)} (${acquisitionId})`;
}

function modeOf({ mode }) {
  return mode.kind === 'permit' ? `${mode.weight} of ${mode.limit} permits` : mode.kind;
}

function seconds(ms) {
  return ms === undefined ? '' : `${(ms / 1_000).toFixed(1)} s`;
}

function rowsOf({ name, holders, waiters }) {
  const shown = printable(name);
  const holds = holders.map((holder) => ({
    key: `held ${holder.acquisitionId} ${name}`,
    hold: { name, holder },
    cells: [
      shown,
      'held',
      who(holder),
      modeOf(holder),
      holder.fencingToken ?? '',
      seconds(holder.heldForMs),
      seconds(holder.expiresInMs),
    ],
  }));
  const waits = waiters.map((waiter, index) => ({
    key: `waits ${waiter.acquisitionId} ${name}`,
    cells: [shown, `waits, ${index + 1}.`, who(waiter), modeOf(waiter), '', seconds(waiter.waitingForMs), ''],
  }));
  return [...holds, ...waits];
}

function endedRowOf({ name, holder, ending, at }) {
  return {
    key: `${holder.acquisitionId} ${at}`,
    name: ending,
    cells: [printable(name), who(holder), ENDINGS[ending], new Date(at).toLocaleTimeString()],
  };
}

/** Makes the rows of a table those, in that order; a row that stays is the same element. */
function fill(table, rows, mayRelease) {
  const body = table.tBodies[0];
  const present = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  let previous;
  for (const { key, name, cells, hold } of rows) {
    const row =
      present.get(key) ?? newRow(key, name, columnsOf(table).slice(0, cells.length), mayRelease && hold);
    present.delete(key);
    for (const [index, text] of cells.entries())
      if (row.cells[index].textContent !== text) row.cells[index].textContent = text;
    // A row is moved only where the order has changed: moving takes the focus away.
    const expected = previous === undefined ? body.firstElementChild : previous.nextElementSibling;
    if (expected !== row && !(present.has(expected?.dataset.key) && expected.nextElementSibling === row))
      body.insertBefore(row, expected);
    previous = row;
  }
  for (const row of present.values()) row.remove();
}

/** What stands above the columns: on a phone, each cell says it itself. */
function columnsOf(table) {
  return [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
}

function newRow(key, name, columns, hold) {
  const row = document.createElement('tr');
  row.dataset.key = key;
  if (name !== undefined) row.className = name;
  for (const [index, column] of columns.entries()) {
    const cell = document.createElement(index === 0 ? 'th' : 'td');
    if (index === 0) cell.scope = 'row';
    cell.dataset.column = column;
    row.append(cell);
  }
  if (hold) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'danger';
    button.textContent = 'End…';
    button.setAttribute('aria-label', `End the hold of ${printable(hold.name)} by ${who(hold.holder)}`);
    button.addEventListener('click', () => ask(hold));
    const cell = row.insertCell();
    cell.dataset.column = 'Action';
    cell.append(button);
  }
  return row;
}

function show({ at, states, isPart, ended, picture, error, mayRelease }) {
  const holds = states.flatMap(({ holders }) => holders).length;
  const waits = states.flatMap(({ waiters }) => waiters).length;
  const part = isPart ? `; the first ${states.length} names only: start the command with a PREFIX` : '';
  element('summary').textContent =
    `${states.length} names, ${holds} held, ${waits} waiting, at ${new Date(at).toLocaleTimeString()}${part}`;
  element('none').hidden = states.length > 0;
  element('action-column').hidden = !mayRelease;
  fill(element('held'), states.flatMap(rowsOf), mayRelease);
  fill(element('ended'), ended.map(endedRowOf), false);
  showPicture(picture);
  problem(error === undefined ? '' : `The store did not answer; this is what it said before. ${error}`);
  tellOf(ended);
}

/** A line for each lock whose holder waits, and for each that it waits for. A line that stays is the same element. */
function showPicture(picture) {
  drawn = picture;
  element('waits-section').hidden = picture.length === 0;
  const list = element('waits');
  while (list.children.length > picture.length) list.lastElementChild.remove();
  while (list.children.length < picture.length) {
    const item = document.createElement('li');
    item.append(document.createElement('strong'), document.createElement('span'));
    list.append(item);
  }
  for (const [index, { name, holders, waitsFor }] of picture.entries()) {
    const item = list.children[index];
    const isInCircle = waitsFor.some((to) => to.isInCircle);
    item.classList.toggle('circle', isInCircle);
    const by =
      holders.length === 0 ? 'held by nobody that is listed' : `held by ${holders.map(who).join(', ')}`;
    const on = waitsFor.map((to) => printable(to.name)).join(', ');
    const wait = on === '' ? '' : `, waits for ${on}${isInCircle ? ': a circle' : ''}`;
    const texts = [printable(name), ` ${by}${wait}`];
    for (const [part, text] of texts.entries())
      if (item.children[part].textContent !== text) item.children[part].textContent = text;
  }
  drawArrows();
}

/** An arrow from each lock to those that its holders wait for, at the left of the lines. */
function drawArrows() {
  const svg = element('arrows');
  const items = [...element('waits').children];
  const lineOf = new Map(drawn.map(({ name }, index) => [name, index]));
  const right = svg.clientWidth;
  const middle = (index) => items[index].offsetTop + items[index].offsetHeight / 2;
  const paths = drawn.flatMap(({ waitsFor }, from) =>
    waitsFor.flatMap(({ name, isInCircle }) => {
      const to = lineOf.get(name);
      // An arrow up, which closes a circle, goes around those down.
      const [start, end] = [middle(from) + 7, middle(to) - 7];
      const left = Math.max(0, right - (to > from ? 24 : 50) - 14 * Math.abs(to - from));
      const curve = `M${right} ${start}C${left} ${start} ${left} ${end} ${right - 8} ${end}`;
      const head = `M${right - 9} ${end - 5}L${right} ${end}L${right - 9} ${end + 5}z`;
      const kind = isInCircle ? ' circle' : '';
      return [
        [curve, `curve${kind}`],
        [head, `head${kind}`],
      ];
    }),
  );
  const shape = paths.join(' ');
  if (svg.dataset.shape === shape) return;
  svg.dataset.shape = shape;
  const parts = paths.map(([d, kind]) => {
    const path = document.createElementNS(svg.namespaceURI, 'path');
    path.setAttribute('d', d);
    path.setAttribute('class', kind);
    return path;
  });
  svg.replaceChildren(...parts);
}

/** Tells screen readers of holds that were lost since the last look. */
function tellOf(ended) {
  const known = toldOf ?? new Set(ended.map((one) => endedRowOf(one).key));
  const lost = ended.filter((one) => one.ending === 'ran-out' && !known.has(endedRowOf(one).key));
  toldOf = new Set(ended.map((one) => endedRowOf(one).key));
  if (lost.length > 0)
    element('news').textContent =
      `Lost: ${lost.map(({ name, holder }) => `${printable(name)} of ${who(holder)}`).join(', ')}`;
}

function problem(text) {
  const alert = element('problem');
  if (alert.textContent !== text) alert.textContent = text;
  alert.hidden = text === '';
}

async function request(path, options) {
  const response = await fetch(path, { ...options, headers: { ...headers, ...options?.headers } });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

function ask(hold) {
  asked = hold;
  element('ask-text').textContent = `${printable(hold.name)}, held by ${who(hold.holder)}`;
  element('ask').showModal();
}

async function release() {
  const { name, holder } = asked;
  element('ask').close();
  const body = JSON.stringify({ name, acquisitionId: holder.acquisitionId });
  try {
    const { released } = await request('/release', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    element('news').textContent =
      released.length > 0
        ? `Ended: ${printable(name)} of ${who(holder)}`
        : `${printable(name)} was not held by ${who(holder)} any more`;
    show(await request('/state'));
  } catch (error) {
    problem(`The hold was not ended. ${error.message}`);
  }
}

element('cancel').addEventListener('click', () => element('ask').close());
element('release').addEventListener('click', () => void release());
element('pause').addEventListener('click', () => {
  isPaused = !isPaused;
  element('pause').setAttribute('aria-pressed', String(isPaused));
});

addEventListener('resize', drawArrows);

for (;;) {
  let everyMs = 1_000;
  try {
    const state = await request('/state');
    ({ everyMs } = state);
    if (!isPaused) show(state);
  } catch (error) {
    if (!isPaused) problem(`The board does not answer. ${error.message}`);
  }
  await new Promise((resolve) => setTimeout(resolve, everyMs));
}
