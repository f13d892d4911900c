import type { ChainMember, Holder, ResourceState, Waiter } from '@locks/core';
import { jsonLine, shown } from '../foreign-text.ts';

/** A state as one line of JSON: the documented form `{ name, holders, waiters }`. */
export function jsonOf(state: ResourceState): string {
  const { name, holders, waiters } = state;
  return jsonLine({ name, holders, waiters });
}

const HEADER = ['NAME', 'MODE', 'HOLDER', 'TOKEN', 'HELD', 'LEFT', 'WAITING'];

/** A table of states: a row for each holder, and one for a lock that is only waited for. */
export function tableOf(states: readonly ResourceState[]): string {
  const rows = [HEADER, ...states.flatMap(rowsOf)];
  const widths = HEADER.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** The details of one state, for a person. */
export function detailsOf({ name, holders, waiters }: ResourceState): string {
  if (holders.length + waiters.length === 0) return `${shown(name)} is free`;
  return [
    shown(name),
    ...holders.map((holder) => `  held by ${who(holder)}, ${modeOf(holder)}${timesOf(holder)}`),
    ...waiters.map(
      (waiter, index) => `  ${index + 1}. waits ${who(waiter)}, ${modeOf(waiter)}${waited(waiter)}`,
    ),
  ].join('\n');
}

function rowsOf(state: ResourceState): string[][] {
  const { holders, waiters } = state;
  const name = shown(state.name);
  const waiting = String(waiters.length);
  if (holders.length === 0) return [[name, '', '(free)', '', '', '', waiting]];
  return holders.map((holder, index) => [
    index === 0 ? name : '',
    modeOf(holder),
    shown(holder.label ?? holder.acquisitionId),
    holder.fencingToken === undefined ? '' : String(holder.fencingToken),
    seconds(holder.heldForMs),
    seconds(holder.expiresInMs),
    index === 0 ? waiting : '',
  ]);
}

export function who({ label, acquisitionId }: Pick<ChainMember, 'label' | 'acquisitionId'> | Holder): string {
  const id = shown(acquisitionId);
  return label === undefined ? id : `${shown(label)} (${id})`;
}

function modeOf({ mode }: Holder | Waiter): string {
  return mode.kind === 'permit' ? `${mode.weight} of ${mode.limit} permits` : mode.kind;
}

function timesOf({ fencingToken, heldForMs, expiresInMs }: Holder): string {
  return [
    ...(fencingToken === undefined ? [] : [`token ${fencingToken}`]),
    ...(heldForMs === undefined ? [] : [`for ${seconds(heldForMs)}`]),
    ...(expiresInMs === undefined ? [] : [`${seconds(expiresInMs)} left`]),
  ]
    .map((part) => `, ${part}`)
    .join('');
}

function waited({ waitingForMs }: Waiter): string {
  return waitingForMs === undefined ? '' : `, for ${seconds(waitingForMs)}`;
}

export function seconds(ms: number | undefined): string {
  return ms === undefined ? '' : `${(ms / 1_000).toFixed(1)} s`;
}
