import { type SlotStore, readSlotEntry, slotEntryText } from '@locks/core/backend';
import { FencedTexts, type TextRecordStore } from './fenced-texts.ts';

/**
 * The slot store of `once` of `@locks/once` in a store that compares and swaps: the entry of a name is under the key `<prefix>once/<name>`.
 *
 * @param prefix - that of the locks, checked
 * @param what - the function that the user called, for the message of an error
 */
export function slotsIn(store: TextRecordStore, prefix: string, what: string): SlotStore {
  const texts = new FencedTexts(store, `${prefix}once/`, what);
  return {
    async read(name) {
      const { found, now } = await texts.read(name);
      return { entry: found && readSlotEntry(found.text), storeTime: now };
    },
    // An entry that the store deleted would let a slot run again.
    write: (name, entry) =>
      texts.write(name, () => ({ text: slotEntryText(entry), token: entry.token, endsAt: undefined }), false),
  };
}
