# Each layer's objects link with those of the layers below it alone: no symbol that one of them wants is to be found further up.
#
#   cmake -DNM=nm -DOBJECTS=FILE;… -P layers.cmake
#
# OBJECTS are the library's; which layer one is of, the folder of its source tells. Symbols that no object of the library has are
# the C library's, or the compiler's.
set(layers core/platform core/pages core/backend)

set(below)
set(wrong 0)
foreach(layer IN LISTS layers)
  foreach(object IN LISTS OBJECTS)
    if(object MATCHES "/${layer}/[^/]*$")
      list(APPEND below ${object})
    endif()
  endforeach()
  set(defined)
  set(wanted)
  foreach(object IN LISTS below)
    execute_process(COMMAND ${NM} -g ${object} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCHALL " [A-TV-Z] [A-Za-z0-9_]+" has "${symbols}")
    string(REGEX MATCHALL " U sy_[A-Za-z0-9_]+" lacks "${symbols}")
    list(TRANSFORM has REPLACE "^ . " "")
    list(TRANSFORM lacks REPLACE "^ . " "")
    list(APPEND defined ${has})
    list(APPEND wanted ${lacks})
  endforeach()
  list(REMOVE_DUPLICATES wanted)
  list(REMOVE_ITEM wanted ${defined})
  list(LENGTH below count)
  if(wanted OR count EQUAL 0)
    message("${layer}: of ${count} objects up to here, some want what is above: ${wanted}")
    set(wrong 1)
  endif()
endforeach()
if(wrong)
  message(FATAL_ERROR "a layer calls upwards by name; let what is above register a function instead")
endif()
