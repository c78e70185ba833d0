/** One of these words, which editors suggest, or one that this version does not know. */
export type Open<Word extends string> = Word | (string & Record<never, never>)
