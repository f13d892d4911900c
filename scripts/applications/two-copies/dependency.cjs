// A CommonJS package that an application uses; both use the same locks.
const core = require('@locks/core');
const { memoryBackend } = require('@locks/memory');

exports.coreOfDependency = core;

exports.deduct = (locks, name) =>
  core.locked(locks, name, () => locks.lock(name).run((lease) => ({ holdCount: lease.holdCount })))();

exports.failure = () => new core.LockError('LOCK_TIMEOUT', 'busy');

exports.ownLocks = () => core.createLocks(memoryBackend(), { reentrant: true });
