// An application of ES modules whose CommonJS dependency uses the same locks. Prints what it saw.
import { createLocks, isLockError, LockError } from '@locks/core';
import { memoryBackend } from '@locks/memory';
import { subscribe } from 'node:diagnostics_channel';
import dependency from './dependency.cjs';

const acquired = [];
subscribe('locks:acquired', ({ name }) => acquired.push(name));

const locks = createLocks(memoryBackend(), { reentrant: true });
const theirs = dependency.ownLocks();
const a = locks.lock('a');
const b = theirs.lock('b');
async function main() {
  const { holdCount } = await a.run(() => dependency.deduct(locks, 'a'));
  const detachedCount = await a.run(() =>
    b.run(() => theirs.detached(() => a.run((lease) => lease.holdCount, { waitMs: 50 }).catch(codeOf))),
  );
  // Each branch has a turn and waits for the other's: one of them is told.
  const pause = () => new Promise((resolve) => setTimeout(resolve, 20));
  const branches = await a.run(() =>
    b.run(() =>
      Promise.all([
        a.run(() => pause().then(() => b.run(() => 'done', { waitMs: 1_000 }).catch(codeOf))),
        b.run(() => pause().then(() => a.run(() => 'done', { waitMs: 1_000 }).catch(codeOf))),
      ]),
    ),
  );
  const theirError = dependency.failure();
  await Promise.all([locks.close(), theirs.close()]);

  console.log(
    JSON.stringify({
      copies: dependency.coreOfDependency.createLocks === createLocks ? 1 : 2,
      holdCount,
      detachedCount,
      branches: branches.sort(),
      errorIsKnown: isLockError(theirError, 'LOCK_TIMEOUT') && theirError instanceof LockError,
      told: [...new Set(acquired)].sort(),
    }),
  );
}

function codeOf(error) {
  return error.code;
}

// No await at the top level: this file is bundled to CommonJS as well.
void main();
