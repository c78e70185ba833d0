/** The agent's answer to `help`. */
export const HELP = `Each line of a message is a step of mine, done in order; a line that is none I say back.

say TEXT                         say it, streamed and then settled
think TEXT                       think it
call NAME {JSON}                 ask you for a function's result; "& call NAME {JSON}" asks for another at once
shell COMMAND                    pretend to run it
write PATH TEXT                  write a file; under outputs/ it becomes an artifact (write PATH 20MiB for size)
approve STEP                     do the step once a person approved it
ask QUESTION                     ask a person
preview PORT                     show what is served there
wait 2s                          let time pass
collect 45s                      let this turn's artifacts take that long to collect
burst COUNT [CHARACTERS]         that many messages at once
fail REASON                      end the turn as failed
hang                             work until steered, cancelled or out of time
cannot start REASON              as the first line: do not even begin

{{last}} is the output of the last call, {{calls.NAME}} that of the last call of NAME.`
