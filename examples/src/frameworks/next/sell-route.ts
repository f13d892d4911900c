/** Next.js, `app/sell/[sku]/route.ts`. */
import { isLockError } from '@locks/core';
import { sell } from '../stock.ts';
import { shared } from './locks.ts';

export async function POST(
  _request: Request,
  { params }: { params: Promise<{ sku: string }> },
): Promise<Response> {
  const { sku } = await params;
  const { locks, redis } = shared();
  try {
    return new Response(await locks.lock(`stock:${sku}`).run(() => sell(redis, sku)));
  } catch (error) {
    if (!isLockError(error, 'LOCK_TIMEOUT')) throw error;
    return Response.json({ busy: error.lockName }, { status: 423 });
  }
}
