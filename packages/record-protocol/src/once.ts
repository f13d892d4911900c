export type { TextRecordStore } from './fenced-texts.ts';
export { slotsIn } from './slot-store.ts';
export { resultsIn } from './result-store.ts';
