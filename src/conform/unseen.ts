import { idsOf } from './catalogue.ts'

/** Rules that no run can try, by reason. */
export const UNSEEN: readonly (readonly [why: string, ids: readonly string[]])[] = (
  [
    [
      'a duty of the client, which no answer of the service shows',
      `GEN-12 GEN-18 GEN-19 ACT-16 ACT-22 ACT-23 TRN-24 TOO-61 TOO-62 WHS-31..33 WHS-36 STA-23 AUT-28 EVT-30 EVT-33
      EVT-37 ERR-16 ERR-30 ERR-35 ERR-43 ERR-46 ERR-50 VER-09`,
    ],
    [
      'happens inside the service and cannot be seen from outside',
      `SES-45 SES-48 SES-107 TOO-13 TOO-36 TOO-38 TOO-56 TOO-57 EVT-02 EVT-31 ERR-49 TRN-12 STA-28 WHS-34 WHS-35
      FIL-12 LIM-53 LIM-55 LIM-60`,
    ],
    [
      'takes longer than a run may',
      `SES-11 SES-119 SES-120 ART-03 STA-25 STA-26 STA-34..38 STA-39..43 WHS-08 LIM-08 LIM-25..29 LIM-61 PRE-10
      PRE-11 EVT-34 EVT-35 LIM-33`,
    ],
    [
      'would use up shared resources of the organization',
      `SES-127 ERR-29 ERR-32 ERR-33 ERR-47 LIM-05..07 LIM-15..18 LIM-31 LIM-32 LIM-36 LIM-38 LIM-42..51 MOD-41
      MOD-46..48 SES-96`,
    ],
    [
      'needs a token with other scopes, or another token',
      'FIL-34 HLT-17 MOD-31 AUT-02 AUT-04 AUT-10 AUT-11 AUT-17 AUT-21 AUT-24 AUT-27 AUT-29 AUT-35 LIM-24 LIM-64',
    ],
    [
      'needs something that a client cannot bring about',
      `GEN-16 SES-18..20 SES-63 SES-64 SES-102 ACT-19 ACT-21 STA-10..12 STA-15 TRN-15 TOO-32 ERR-37 ERR-39..42
      VER-16`,
    ],
    ['a promise about versions to come', 'VER-02..06'],
    ['open: no result of a run decides it', 'STA-18 STA-27 STA-33 ERR-44 ERR-51 VER-17 VER-18'],
  ] as const
).map(([why, ids]) => [why, idsOf(ids)])
