/** A slot that does not end while the tests run. */
export const SLOT = [
  '--slot',
  'day',
  '--starts-at',
  `${String((new Date().getUTCHours() + 12) % 24).padStart(2, '0')}:00`,
];
/** Such a slot, and time enough. */
export const BASE = [...SLOT, '--at-most', '2m'];
