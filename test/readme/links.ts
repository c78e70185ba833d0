/** The targets of the links and pictures of a document, without those in code. */
export function linksOf(document: string): string[] {
  return [...prose(document).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)
}

/** The anchors of its headings, as GitHub makes them: a repeated one gets a number. */
export function anchorsOf(document: string): string[] {
  const seen = new Map<string, number>()
  return [...prose(document).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => {
    const anchor = heading
      .trim()
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-')
    const times = seen.get(anchor) ?? 0
    seen.set(anchor, times + 1)
    return times === 0 ? anchor : `${anchor}-${times}`
  })
}

function prose(document: string): string {
  return document.replaceAll(/^```[^\n]*\n.*?^```$/gms, '')
}
