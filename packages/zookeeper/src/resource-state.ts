import type { Holder, ResourceState, Waiter } from '@locks/core';
import { hasCode, type NodeContent } from './client-port.ts';
import { modeOf, type SeatName } from './names.ts';
import { decodeSeat } from './seat-data.ts';
import type { Session } from './session.ts';

/** Who holds a resource and who waits for it, as of now, whichever server answers. */
export async function stateOf(session: Session, resource: string, parent: string): Promise<ResourceState> {
  const [, line] = await Promise.all([session.barrier(), session.line(parent)]);
  const { holders, waiters } = line;
  const [held, waiting] = await Promise.all([
    Promise.all(holders.map((seat) => holderAt(session, parent, seat))),
    Promise.all(waiters.map((seat) => waiterAt(session, parent, seat))),
  ]);
  return {
    resource,
    holders: held.filter((holder) => holder !== undefined),
    waiters: waiting.filter((waiter) => waiter !== undefined),
  };
}

/** `undefined`: gone meanwhile. */
export async function holderAt(
  session: Session,
  parent: string,
  seat: SeatName,
): Promise<Holder | undefined> {
  const content = await contentOf(session, `${parent}/${seat.name}`);
  if (content === undefined) return undefined;
  const { label, token } = decodeSeat(content);
  return {
    acquisitionId: seat.acquisitionId,
    mode: modeOf(seat.seat),
    ...(label !== undefined && { label }),
    fencingToken: token,
    heldForMs: ageOf(content),
  };
}

async function waiterAt(session: Session, parent: string, seat: SeatName): Promise<Waiter | undefined> {
  const content = await contentOf(session, `${parent}/${seat.name}`);
  if (content === undefined) return undefined;
  const { label } = decodeSeat(content);
  return {
    acquisitionId: seat.acquisitionId,
    mode: modeOf(seat.seat),
    ...(label !== undefined && { label }),
    waitingForMs: ageOf(content),
  };
}

async function contentOf(session: Session, path: string): Promise<NodeContent | undefined> {
  try {
    return await session.ask(() => session.port.read(path));
  } catch (error) {
    if (hasCode(error, 'NO_NODE')) return undefined;
    throw error;
  }
}

/** As far as the clocks of client and server agree: for operators only. */
function ageOf({ createdAt }: NodeContent): number {
  return Math.max(0, Date.now() - createdAt);
}
