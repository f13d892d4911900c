export { type LintOptions, lintLocks, type LockOrder, type OrderContradiction } from './lint-locks.ts';
